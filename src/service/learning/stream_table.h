// SPDX-License-Identifier: Apache-2.0
// The one table of the streams that programs read, for all learners: which stream an access belongs
// to, and when a stream ends.
//
// A stream begins at an open, or at a read or an advice of a stream that the table does not know:
// its open was lost, or a child has taken the description over. It ends
// - when a process closes its description, whichever process that is: a parent that opens files for
//   its children learns nothing of their ends;
// - when its process uses the description's number for another file, or opens anew: the close was
//   lost;
// - when its process has died, or the last holder of its description has: a killed process closes
//   nothing;
// - when there are more than kStreamsMax: the stream of the oldest use ends.
//
// The table follows the open descriptions as well, whose streams may be of several processes. A
// description outlives the streams that end for want of room or with a process.
//
// A learner keeps its state of a stream in a StreamSlot, and drops the state when the batch names
// the stream among its ends. A state that derives from std::enable_shared_from_this may have weak
// pointers to it elsewhere. What a learner remembers of a file (HeatTable's maps,
// KnownFutureTable's found orders and opened files, NodeKnowledge), of a segment
// (LearnedReplacement), of a declared order (DeclaredOrders) or of a recording (TraceRecorder) is
// knowledge, which outlives streams; the learner keeps that itself. docs/architecture.md lists
// these tables and their reasons.
//
// Thread safety: the thread of the event reader calls all functions, once it runs. Ownership: owns
// the streams; borrows the memory; outlives the slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "memory/tiers/node_memory.h"
#include "service/learning/access_observer.h"
#include "service/learning/access_stream.h"

namespace cairn::node {

class StreamTable {
 public:
  static constexpr std::size_t kStreamsMax = 4096;

  explicit StreamTable(const NodeMemory& memory) : memory_(memory) {}
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;

  // Sets the stream of each access, and the ends that come before it. Streams that end exist until
  // forget_ended(), so that each learner can go through the batch in its order.
  void follow(std::span<ToldAccess> batch);
  // Processes have died: ends their streams, and the descriptions that nobody holds.
  StreamEnds follow_deaths();
  // All learners have seen what has ended.
  void forget_ended() { ended_.clear(); }

  std::size_t size() const { return streams_.size(); }
  // Descriptions that are open; at most as many as the node has records of them.
  std::size_t open_count() const;

  // Calls visit(AccessStream&) for each stream that forget_ended() has not taken away.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (AccessStream& stream : streams_) visit(stream);
    for (AccessStream& stream : ended_) visit(stream);
  }

 private:
  template <typename State>
  friend class StreamSlot;

  using Streams = std::list<AccessStream>;
  struct Description {
    ObjectIndex object = ObjectIndex::kNone;  // none: it is closed, and streams of it are left
    std::vector<Streams::iterator> streams;
  };
  using Descriptions = std::unordered_map<DescriptionIndex, Description>;

  std::size_t add_slot() {
    CAIRN_CHECK(slots_ < AccessStream::kSlotsMax);
    return slots_++;
  }
  void follow(ToldAccess& told);
  void close(ToldAccess& told);
  static Streams::iterator* find(Description& description, Owner owner);
  void begin(Description& description, ToldAccess& told);
  void make_room_for_one(StreamEnds* ends);
  template <typename IsOver>
  void end_streams(Description& description, StreamEnds* ends, IsOver&& is_over);
  Descriptions::iterator drop_if_unused(Descriptions::iterator description);

  const NodeMemory& memory_;
  std::size_t slots_ = 0;
  Streams streams_;  // the oldest use first
  Streams ended_;
  Descriptions descriptions_;
};

// The states that one learner keeps of the streams, one of each stream at most.
//
// Thread safety: none; as the learner says. Ownership: the streams own the states; none of them
// outlives the slot.
template <typename State>
class StreamSlot {
 public:
  explicit StreamSlot(StreamTable& table) : table_(table), number_(table.add_slot()) {}
  ~StreamSlot() {
    table_.for_each([this](AccessStream& stream) { stream.states_[number_].reset(); });
  }
  StreamSlot(const StreamSlot&) = delete;
  StreamSlot& operator=(const StreamSlot&) = delete;

  // Null until make().
  State* find(const AccessStream& stream) const {
    return static_cast<State*>(stream.states_[number_].get());
  }
  State& make(AccessStream& stream) {
    CAIRN_CHECK(find(stream) == nullptr);
    stream.states_[number_] = std::shared_ptr<State>(std::make_unique<State>());
    ++size_;
    return *find(stream);
  }
  void drop(AccessStream& stream) {
    CAIRN_CHECK(find(stream) != nullptr);
    stream.states_[number_].reset();
    --size_;
  }

  std::size_t size() const { return size_; }
  // Calls visit(State&) for each.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    table_.for_each([&](const AccessStream& stream) {
      if (State* state = find(stream); state != nullptr) visit(*state);
    });
  }

 private:
  StreamTable& table_;
  const std::size_t number_;
  std::size_t size_ = 0;
};

}  // namespace cairn::node
