// SPDX-License-Identifier: Apache-2.0
// The log behind DurableLog: numbers, places and waiting.
//
// An append takes its number and its place in the newest segment under the lock, and writes there
// without it. So records reach the file in any order, and `written` is what all lower numbers have
// reached. The flush thread flushes for everybody who waits at that moment.
//
// Thread safety: all public functions, from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "service/durable_log/log_figures.h"
#include "service/durable_log/log_objects.h"
#include "service/durable_log/segment_ring.h"
#include "service/durable_log/superblock.h"

namespace cairn::durable {

struct FoundLog;
class LogScan;

// What a record says, before it has a number and a place.
struct RecordDraft {
  RecordKind kind = RecordKind::kCleanEnd;
  std::uint16_t flags = 0;
  LogObject object = LogObject::kNone;
  std::array<std::uint64_t, 3> words{};
  Bytes payload;
};

class LogCore {
 public:
  using Lock = std::unique_lock<std::mutex>;

  LogCore(std::unique_ptr<LogStorage> storage, OpenSuperblock superblock,
          const LogOptions& options);
  ~LogCore();

  // Takes over what the log has and tells `found` (null: nobody) of it; begins a segment, starts
  // the threads.
  Status start(FoundLog* found);

  LogObject hold(const ObjectKey& key);
  Result<LogObject> add_object(const FileIdentity& identity, const FileState& store);
  void forget(LogObject object);
  Result<Lsn> append(const RecordDraft& draft);
  Result<Lsn> append_renamed(LogObject object, const std::string& path);
  std::size_t data_bytes_max() const {
    return std::min<std::size_t>(kDataBytesMax, ring_.segment_bytes() / 4);
  }
  // The mark of this start of the machine.
  std::uint64_t boot() const { return boot_; }
  std::uint64_t id() const { return log_; }
  Result<Lsn> append_removed(LogObject object);
  Result<Lsn> begin_storing(LogObject object);
  std::string path_of(LogObject object) const;
  Status retire(LogObject object, Lsn upto, const FileState& store);
  Status commit_until(Lsn lsn, const std::chrono::steady_clock::time_point* limit);

  Lsn appended() const;
  Lsn durable() const;
  Status health() const;
  std::vector<PressingObject> oldest(std::size_t count, bool only_under_pressure) const;
  std::vector<LoggedDirectory> directories() const;
  std::vector<RemovedObject> removed() const;
  void on_pressure(std::function<void()> call);
  std::uint64_t leftovers() const;
  LogFigures figures() const;
  Status close();

 private:
  // A record with its number, on its way to its place.
  struct Placed {
    std::shared_ptr<LogFile> file;
    std::uint64_t at = 0;
    RecordHeader header;
  };

  Status adopt(LogScan& scan, FoundLog* found);
  void drop_idle_objects();
  void note_found(const RecordHeader& header, Bytes payload);
  void apply(const RecordHeader& header, Bytes payload);
  Status begin_segment(Lock& lock, bool for_statement);
  Status write_segment_header(UsedSegment& segment);
  Result<Lsn> append_locked(Lock& lock, const RecordDraft& draft, std::vector<std::byte>& buffer);
  Placed place(Lock& lock, const RecordDraft& draft, std::uint64_t payload_sum);
  int write_record(const Placed& placed, std::vector<std::byte>& buffer);
  void fail(Lock& lock, const Status& status);
  void release_segment(std::uint64_t segment, Lsn by);
  bool is_pressed(const Lock& lock) const;
  void tell_pressure(Lock& lock);
  Lsn written(const Lock& lock) const;
  void stop_threads();
  void flush_loop();
  void await_company(Lock& lock);
  bool flush_once(Lock& lock);
  void free_segments(Lock& lock);
  void declare_durable(Lock& lock);
  bool may_declare(const Lock& lock);
  bool has_news_to_declare(const Lock& lock);
  void say_where_log_begins(Lock& lock);
  void prepare_loop();
  std::vector<std::byte> take_buffer();
  void give_back(std::vector<std::byte> buffer);

  const std::unique_ptr<LogStorage> storage_;
  const OpenSuperblock superblock_;
  const std::uint64_t log_;
  const std::uint64_t boot_;
  std::atomic<std::uint64_t>* const told_last_;

  mutable std::mutex mutex_;
  std::condition_variable durable_changed_;
  std::condition_variable flush_wanted_;   // the flush thread sleeps on it
  std::condition_variable ready_changed_;  // segments are ready, or wanted
  // Below: guarded by mutex_.
  SegmentRing ring_;
  LogObjects objects_;
  // Records whose bytes are not in the file yet, each with placed_bytes_ before it.
  std::map<std::uint64_t, std::uint64_t> in_flight_;
  Lsn last_ = Lsn::kNone;
  Lsn durable_ = Lsn::kNone;
  // Bytes of records ever placed: all, the durable ones, and those that a record says are durable.
  std::uint64_t placed_bytes_ = 0;
  std::uint64_t durable_bytes_ = 0;
  std::uint64_t declared_bytes_ = 0;
  Lsn declaration_ = Lsn::kNone;          // the last record that is for nothing else
  bool is_ended_ = false;                 // the last record is, or will be, the clean end
  Lsn wanted_ = Lsn::kNone;               // somebody waits for it
  std::multiset<std::uint64_t> waiting_;  // what threads wait for in a commit
  std::size_t company_ = 0;               // threads that the next flush will probably serve
  std::chrono::steady_clock::duration flush_time_{};
  std::uint64_t leftovers_ = 0;
  std::uint64_t pressed_segment_ = 0;  // told of by on_pressure()
  std::function<void()> pressure_call_;
  Status failure_;
  LogFigures figures_;
  bool is_closing_ = false;
  bool is_closed_ = false;
  bool is_beginning_ = false;  // a thread is beginning a segment, without the lock for a while

  std::mutex buffers_mutex_;
  std::vector<std::vector<std::byte>> buffers_;

  std::thread flusher_;
  std::thread preparer_;
};

}  // namespace cairn::durable
