// SPDX-License-Identifier: Apache-2.0
// What each file has cost a run while it is sampled: the time that programs of the run waited in
// reads that were no hits in RAM, in writes and in fsyncs, and the bytes of them. Several threads
// that wait at a time count as many times.
//
// It hears what learners hear, which is lossy and has only a part of the plain hits. Clients tell
// each miss and each fsync, and sums of what they waited and wrote (memory/tiers/wait_sums.h), so
// the order of the files is right unless events were lost. An event names the owner of its
// process's slot, and the table of clients knows the run of an owner, also for a while after the
// process has gone.
//
// The store may hang where the name of a file is looked up, so no lock is held meanwhile.
//
// Thread safety: on_accesses() by the event reader, all else from any thread. Units: bytes,
// nanoseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/attachment/client_table.h"
#include "service/learning/access_observer.h"
#include "service/learning/event_reader.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

struct FileCost {
  std::string path;
  ObjectIndex object = ObjectIndex::kNone;
  std::uint64_t miss_bytes = 0;   // the store gave them
  std::uint64_t late_bytes = 0;   // were on their way from the store
  std::uint64_t below_bytes = 0;  // a file tier gave them
  std::uint64_t hit_bytes = 0;    // RAM gave them: those that the node was told of
  std::uint64_t waits = 0;        // reads that were no hits in RAM
  std::uint64_t written_bytes = 0;
  std::uint64_t fsyncs = 0;
  // As clients say: sums that pass 2^64 begin anew.
  std::uint64_t read_ns = 0;  // of the waits
  std::uint64_t write_ns = 0;
  std::uint64_t fsync_ns = 0;

  std::uint64_t waited_bytes() const { return miss_bytes + late_bytes + below_bytes; }
  std::uint64_t cost_ns() const { return read_ns + write_ns + fsync_ns; }
  bool was_read() const { return waited_bytes() + hit_bytes != 0; }
};

class FileCosts final : public AccessObserver {
 public:
  // More files are not counted: of one run, and of all together.
  static constexpr std::size_t kFilesMax = 4096;
  static constexpr std::size_t kFilesOfAllMax = 8 * kFilesMax;

  // All outlive it.
  FileCosts(const NodeMemory& memory, const ClientTable& clients, EventReader& events,
            const StoreFiles& written)
      : memory_(memory), clients_(clients), events_(events), written_(written) {}

  // Listens for this run as well, which begins from nothing.
  void begin(std::uint32_t run);
  void end(std::uint32_t run);
  // Waits until what programs have told by now is counted. Not the event reader.
  void settle() { events_.settle(); }
  // Has the reader do so soon: a file that is open has a name.
  void hurry() { events_.wake(); }
  void on_accesses(std::span<const ToldAccess> batch) override;

  // Those that cost the run most, first the costliest.
  std::vector<FileCost> costliest(std::uint32_t run, std::size_t count) const;
  // How many files the run has read and written, as far as they were counted one by one, and all of
  // its fsyncs.
  struct Totals {
    std::size_t read = 0;
    std::size_t written = 0;
    std::uint64_t fsyncs = 0;
  };
  Totals totals(std::uint32_t run) const;

 private:
  struct Entry {
    ObjectKey key;
    FileCost cost;
  };
  struct RunCosts {
    std::unordered_map<std::uint32_t, Entry> files;  // by object
    std::vector<FileCost> gone;                      // whose object is another file's by now
    std::uint64_t fsyncs = 0;                        // also of files that are not counted
    std::size_t count() const { return files.size() + gone.size(); }
  };
  struct Unnamed {
    std::uint32_t run = 0;
    ToldAccess told;
    ObjectKey key;
  };
  FileCost* cost_of(const ToldAccess& told, std::uint32_t run, RunCosts* costs);
  void add_batch(std::span<const ToldAccess> batch);
  void name_files();
  std::string name_of(const Unnamed& file) const;

  const NodeMemory& memory_;
  const ClientTable& clients_;
  EventReader& events_;
  const StoreFiles& written_;
  std::atomic<std::size_t> listening_{0};  // to runs
  mutable std::mutex mutex_;
  std::map<std::uint32_t, RunCosts> runs_;
  std::size_t files_of_all_ = 0;
  std::vector<Unnamed> unnamed_;  // the event reader's
};

}  // namespace cairn::node
