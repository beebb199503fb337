// SPDX-License-Identifier: Apache-2.0
// Answers sync() and syncfs() of the node's programs (kSync): when everything that was dirty as the
// request was taken up is stored.
//
// Requests for the same file system that wait together are one round. Two threads, so that a file
// system that hangs does not hold up one that does not.
//
// Thread safety: submit() from any thread. Ownership: owns the askers until they are answered.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "service/write_back/asker.h"
#include "service/write_back/flusher.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

class SyncWorker {
 public:
  static constexpr unsigned kThreads = 2;

  // Called when the files of a file system (0: of all) are stored. 0 or -errno.
  using Afterwards = std::function<int(std::uint64_t device)>;

  SyncWorker(const NodeMemory& memory, StoreFiles& files, Flusher& flusher, Afterwards afterwards)
      : memory_(memory), files_(files), flusher_(flusher), afterwards_(std::move(afterwards)) {}
  ~SyncWorker();

  void start();
  void stop();
  // `device` is the file system's st_dev; 0 means all of them.
  void submit(Asker asker, std::uint64_t device);

 private:
  struct Request {
    Asker asker;
    std::uint64_t device;
  };
  void work();
  // 0 or the errno of a file that could not be stored.
  int store_all_of(std::uint64_t device);

  const NodeMemory& memory_;
  StoreFiles& files_;
  Flusher& flusher_;
  const Afterwards afterwards_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  std::atomic<bool> stopping_{false};
};

}  // namespace cairn::node
