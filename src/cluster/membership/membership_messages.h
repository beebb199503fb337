// SPDX-License-Identifier: Apache-2.0
// Messages between members and coordinators.
//
//   type      from, to              header                                  payload
//   kRenew    member, coordinator   request, nonce, incarnation, epoch,     -
//                                   the last request that was replied to
//   kLeave    member, coordinator   the same                                -
//   kAnswer   leader, member        request, nonce, verdict, settled epoch  a view, if the member
//                                                                           knows another one
//   kElsewhere  coordinator, member  request, the leader or 0               -
//   kView     leader, member        settled epoch                           a view
//
// A renewal without an incarnation asks to join: first for a ticket, then with it.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "cluster/membership/view.h"
#include "cluster/transport/transport.h"

namespace cairn::cluster {

inline constexpr MessageType kRenewMessage{0x0201};
inline constexpr MessageType kLeaveMessage{0x0202};
inline constexpr MessageType kAnswerMessage{0x0301};
inline constexpr MessageType kElsewhereMessage{0x0302};
inline constexpr MessageType kViewMessage{0x0303};
// The room that a type belongs to.
inline constexpr std::uint16_t kForConsensus = 0x01;
inline constexpr std::uint16_t kForCoordinator = 0x02;
inline constexpr std::uint16_t kForMember = 0x03;
constexpr std::uint16_t room_of(MessageType type) { return raw(type) >> 8; }

// An answer that comes later than this is no use.
inline constexpr std::int64_t kMembershipDeadlineNs = 1'000'000'000;

inline constexpr std::uint64_t kNoTicket = UINT64_MAX;

struct RenewRequest {
  std::uint64_t request = 0;
  std::uint64_t nonce = 0;
  Incarnation incarnation = Incarnation::kNone;
  Epoch epoch = Epoch::kNone;  // that the member knows
  // The last request that any coordinator has replied to, as far as the member has heard.
  std::uint64_t heard = 0;
  // To join with; kNoTicket asks for one.
  std::uint64_t ticket = 0;
};

enum class Verdict : std::uint8_t {
  kGranted = 1,  // the renewal or join is agreed on
  kNoMember,     // that life is over, or its ticket was
  kTicket,       // join with this ticket
};

struct RenewAnswer {
  std::uint64_t request = 0;
  std::uint64_t nonce = 0;
  Verdict verdict{};
  Epoch settled = Epoch::kNone;
  std::uint64_t ticket = 0;  // with which the node's next process can join
};

struct ElsewhereAnswer {
  std::uint64_t request = 0;
  NodeId leader = NodeId::kNone;
};

Bytes encode(const RenewRequest& request);
Bytes encode(const RenewAnswer& answer);
Bytes encode(const ElsewhereAnswer& answer);
// Nothing for a header that is not one.
std::optional<RenewRequest> decode_renew(std::span<const std::byte> header);
std::optional<RenewAnswer> decode_answer(std::span<const std::byte> header);
std::optional<ElsewhereAnswer> decode_elsewhere(std::span<const std::byte> header);

}  // namespace cairn::cluster
