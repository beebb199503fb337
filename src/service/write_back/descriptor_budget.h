// SPDX-License-Identifier: Apache-2.0
// The shares in the service's descriptors: what clients send of their files and what each client
// takes itself comes out of one room (memory/tiers/descriptor_room.h), and a part is spared for all
// else: requests, files that are fetched from, what is opened for an instant.
//
// Thread safety: all functions from any thread. Ownership: borrows the memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "memory/arena/owner.h"
#include "memory/tiers/node_memory.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

// Numbers that are left for what has no room of its own, of the limit as it is now.
std::uint32_t spared_descriptors();

// The room of one descriptor, given back when its holder lets go of it.
class FileRoom {
 public:
  FileRoom() = default;
  explicit FileRoom(DescriptorRoom& room) : room_(&room) {}
  FileRoom(FileRoom&& other) noexcept : room_(std::exchange(other.room_, nullptr)) {}
  FileRoom& operator=(FileRoom&& other) noexcept {
    std::swap(room_, other.room_);
    return *this;
  }
  ~FileRoom() {
    if (room_ != nullptr) room_->give_back(1);
  }

 private:
  DescriptorRoom* room_ = nullptr;
};

class DescriptorBudget {
 public:
  // Connection and pidfd.
  static constexpr std::int32_t kPerClient = 2;
  // So many numbers stay free for what comes with the messages of a connection.
  static constexpr std::int64_t kLeftByConnections = 4;

  explicit DescriptorBudget(const NodeMemory& memory);

  // Looks what the service has open and what is on its way to it, and sets the room anew: once at
  // start, and when the counts may be off.
  void measure();
  // Leaves files that are written a part of the room.
  bool take_client();
  // The same, if it leaves files most of the room.
  bool take_client_of_many();
  // A successor finds them counted. Requires: measure() afterwards.
  void adopt_clients_to_come(unsigned count) { to_come_.store(static_cast<std::int32_t>(count)); }
  // Such a client has come, or does not come.
  void client_has_come() { to_come_.fetch_sub(1); }
  void give_back_client_to_come();
  // Also what a dead client had on its way and never sent.
  void give_back_client(std::uint16_t slot) const;
  // A message with a descriptor has come from this client: the room is its descriptor's now.
  FileRoom received(std::uint16_t slot) const;

  // The room of a descriptor that is open already and that nobody has reserved it for. Requires:
  // measure() afterwards, which finds it open.
  FileRoom of_open() const { return FileRoom(room()); }
  // The room of one descriptor of the service's own; none when nothing is left.
  std::optional<FileRoom> take_one() const;

  // Whether one more connection leaves enough numbers for what has room or takes room already: else
  // those who only ask could take the numbers of files that are dirty. When clients whose room is
  // taken may be waiting to be let in (`is_awaited`), the numbers that are theirs are free for it.
  bool can_take_connection(bool is_awaited);

  // A number for the caller to open something with at once, although there may be none left; and
  // the number back, if it is free still. measure() does that as well.
  void free_a_number();
  void keep_a_number();

 private:
  bool take_client_and_leave(std::int32_t of_four);
  DescriptorRoom& room() const { return memory_.descriptor_room(); }
  std::int64_t to_come() const { return std::int64_t{kPerClient} * to_come_.load(); }
  std::int64_t being_sent() const;
  bool has_ballast();

  const NodeMemory& memory_;
  std::mutex mutex_;
  std::int32_t total_ = 0;
  std::atomic<std::int32_t> to_come_{0};  // clients whose room is taken and that have nothing open
  // Open for nothing, to be closed when a number is wanted.
  UniqueFd ballast_;
};

}  // namespace cairn::node
