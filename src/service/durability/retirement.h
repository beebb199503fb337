// SPDX-License-Identifier: Apache-2.0
// Frees the durable log: files and names that it has and nobody has made durable for some seconds
// are stored and made durable in the store; under pressure, those first that hold the oldest part
// of the log.
//
// Thread safety: all functions from any thread but start() and stop(), which are the composing
// thread's. Ownership: owns its thread; borrows the rest.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "service/durability/durability_counts.h"
#include "service/logged_files/logged_names.h"
#include "service/write_back/flusher.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

// Borrowed.
struct RetirementParts {
  const NodeMemory& memory;
  LoggedFiles& logged;
  LoggedNames& names;
  StoreFiles& files;
  Flusher& flusher;
  DurabilityCounts& counts;
};

class Retirement {
 public:
  // How long a file rests in the log before it is stored to free it.
  static constexpr std::int64_t kRestNs = 3'000'000'000;

  explicit Retirement(const RetirementParts& parts);
  ~Retirement() { stop(); }
  Retirement(const Retirement&) = delete;
  Retirement& operator=(const Retirement&) = delete;

  void start();
  void stop();
  // The log runs short of room. Does not wait.
  void kick();
  // Something has come into the log: it is looked at from now on. Does not wait.
  void watch() {
    if (is_idle_.load(std::memory_order_relaxed)) kick();
  }
  // Retires all files of the file system `device` (0: of all). Returns 0 or the first -errno.
  int retire_all(std::uint64_t device);

 private:
  using Files = std::vector<LoggedFiles::InLog>;
  void work();
  Files pressing() const;
  Files rested() const;
  int retire(const Files& files);
  int retire_together(const Files& files);
  void remove_gone();
  // What the log has of files that nobody can reach: once their store has lost them for good.
  int retire_removed(const std::vector<durable::RemovedObject>& removed);
  int lose(const durable::RemovedObject& object, std::map<dev_t, int>* synced);
  bool is_removed_due(const std::vector<durable::RemovedObject>& removed);

  const NodeMemory& memory_;
  LoggedFiles& logged_;
  LoggedNames& names_;
  StoreFiles& files_;
  Flusher& flusher_;
  DurabilityCounts& counts_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t removed_since_ns_ = 0;  // the thread's; 0: the log has nothing of such files
  std::atomic<bool> is_idle_{false};   // it sleeps until something comes into the log
  bool is_kicked_ = false;
  bool stopping_ = false;
};

}  // namespace cairn::node
