// SPDX-License-Identifier: Apache-2.0
// The other end of a question: a process at a connection, a thread in the request ring, or nobody.
//
// A thread in the ring gets an answer in any case: EIO when the service has given no other.
//
// Thread safety: one thread at a time. Ownership: move-only; shares the connection, borrows the
// memory.
#pragma once

#include <atomic>
#include <bitset>
#include <memory>
#include <mutex>
#include <utility>

#include "memory/tiers/node_memory.h"
#include "service/keeping/kept_descriptors.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

// The slots of the ring that the service works for, in its own memory: a client can write into a
// slot whatever it likes, and is still owed one answer at a time.
//
// Thread safety: any thread.
class SlotsAtWork {
 public:
  // False when the slot is at work already.
  bool begin(std::uint32_t slot) {
    const std::lock_guard lock(mutex_);
    if (at_work_[slot]) return false;
    at_work_.set(slot);
    return true;
  }
  void end(std::uint32_t slot) {
    const std::lock_guard lock(mutex_);
    at_work_.reset(slot);
  }

 private:
  std::mutex mutex_;
  std::bitset<RequestRing::kSlotsMax> at_work_;
};

class Asker {
 public:
  Asker() = default;
  // Where the question is: off the connection, or in it until it is answered, so that a successor
  // of this service finds it there.
  enum class Question : std::uint8_t { kTaken, kInSocket };
  explicit Asker(SharedFd connection, Question question = Question::kTaken)
      : connection_(std::move(connection)), question_(question) {}
  // The connection is noted as asked (KeptDescriptors), until just before the answer.
  Asker(SharedFd connection, KeptDescriptors& labels)
      : connection_(std::move(connection)), labels_(&labels) {}
  // Requires: `at_work` has begun the slot of `place`.
  Asker(const NodeMemory& memory, const RequestRing::Place& place,
        std::shared_ptr<SlotsAtWork> at_work)
      : memory_(&memory), place_(place), at_work_(std::move(at_work)) {}
  Asker(Asker&& other) noexcept
      : connection_(std::move(other.connection_)),
        question_(other.question_),
        labels_(other.labels_),
        memory_(std::exchange(other.memory_, nullptr)),
        place_(other.place_),
        at_work_(std::move(other.at_work_)) {}
  Asker& operator=(Asker&&) = delete;
  ~Asker();

  // Once. 0, a value or -errno. Does not wait for a process that does not take its answer.
  void answer(int result);

 private:
  SharedFd connection_;
  Question question_ = Question::kTaken;
  KeptDescriptors* labels_ = nullptr;
  const NodeMemory* memory_ = nullptr;
  RequestRing::Place place_;
  std::shared_ptr<SlotsAtWork> at_work_;
};

}  // namespace cairn::node
