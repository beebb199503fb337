// SPDX-License-Identifier: Apache-2.0
// The thread that takes what clients ask in the request ring (memory/arena/request_ring.h), and has
// the same done about it as about a question on a connection.
//
// It waits for nothing but the bell: what takes time is handed to the threads that answer.
//
// Thread safety: start() and stop() by the composing thread. Ownership: owns the thread; borrows
// the rest.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "memory/tiers/node_memory.h"
#include "service/attachment/attach_events.h"
#include "service/write_back/asker.h"

namespace cairn::node {

class RequestReader {
 public:
  RequestReader(const NodeMemory& memory, AttachEvents& events)
      : memory_(memory), events_(events) {}
  ~RequestReader() { stop(); }
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  void start();
  // Hands on all questions that clients have asked; they ask the socket from here on.
  void stop();

 private:
  void run();
  void take();
  void act(const RequestRing::Taken& taken);

  const NodeMemory& memory_;
  AttachEvents& events_;
  std::atomic<bool> stopping_{false};
  bool has_complained_ = false;
  const std::shared_ptr<SlotsAtWork> at_work_ = std::make_shared<SlotsAtWork>();
  std::thread thread_;
};

}  // namespace cairn::node
