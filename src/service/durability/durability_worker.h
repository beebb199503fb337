// SPDX-License-Identifier: Apache-2.0
// Answers who wants a file durable: its changes go to the durable log, and one flush of the log's
// device serves all who have asked by then. What the log cannot take goes to the store.
//
// It takes no object's lock: a client that is about to cut a file holds that while it waits here.
// Where the store has to do, the request goes on to the threads that store.
//
// Thread safety: submit() and submit_cut() from any thread; start() and stop() by the composing
// thread. Ownership: owns its thread, and the askers until they are answered or handed on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "service/durability/durability_counts.h"
#include "service/durability/retirement.h"
#include "service/logged_files/logged_names.h"
#include "service/write_back/asker.h"
#include "service/write_back/flusher.h"
#include "service/write_back/request_worker.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

struct DurabilityParts {
  const NodeMemory& memory;
  LoggedFiles& logged;
  LoggedNames& names;
  StoreFiles& files;
  Flusher& flusher;
  RequestWorker& storing;  // its threads store
  Retirement& retirement;  // frees the log of them
  DurabilityCounts& counts;
};

class DurabilityWorker {
 public:
  explicit DurabilityWorker(const DurabilityParts& parts) : with_(parts) {}
  ~DurabilityWorker() { stop(); }
  DurabilityWorker(const DurabilityWorker&) = delete;
  DurabilityWorker& operator=(const DurabilityWorker&) = delete;

  // `name`: the thread's, at most 15 bytes.
  void start(const char* name);
  // Answers all who have asked. Requires: the storing threads still run.
  void stop();

  void submit(Asker asker, ObjectIndex object);
  // The object is about to be cut to `size`: the answer comes when the log says so durably.
  void submit_cut(Asker asker, ObjectIndex object, std::uint64_t size);
  // The names of the directory are to be durable; `in_store`: whatever the log could say.
  void submit_names(Asker asker, UniqueFd directory, bool in_store);

 private:
  struct Request {
    std::optional<Asker> asker;
    ObjectIndex object = ObjectIndex::kNone;
    std::optional<std::uint64_t> cut;
    SharedFd directory;
    std::int64_t asked_ns = 0;
    durable::Lsn upto = durable::Lsn::kNone;
  };
  void enqueue(Request request);
  void work(const char* name);
  // The requests that wait for a descriptor on its way.
  std::vector<Request> serve(std::vector<Request> requests);
  bool is_on_its_way(const Request& request, const StoreFilePtr& file) const;
  LogAttempt attempt(const Request& request, const StoreFilePtr& file);
  void commit(std::vector<Request>& logged);
  // The log cannot say it: the store gets the directory.
  void store_names(Request request);
  void store(Request request, LogAttempt::Outcome why);
  // In a storing thread: what would keep the others waiting for long. Returns 0 or -errno.
  int log_much(ObjectIndex object);

  const DurabilityParts with_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Request> waiting_;
  bool stopping_ = false;
};

}  // namespace cairn::node
