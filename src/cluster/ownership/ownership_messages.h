// SPDX-License-Identifier: Apache-2.0
// Messages between the users of a file and its home.
//
//   type       from, to     header                               payload
//   kRequest   user, home   request, action, file, block         the bytes of a write
//   kReply     home, user   request, outcome, delegation         the bytes of a read
//   kRevoke    home, user   file, block, revocation              -
//   kRevoked   user, home   the same                             -
//   kRecall    home, user   file, 0, delegation                  -
//   kReturned  user, home   the same                             -
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/object_key.h"
#include "cluster/transport/byte_codec.h"
#include "cluster/transport/transport.h"

namespace cairn::cluster {

inline constexpr MessageType kRequestMessage{0x0401};
inline constexpr MessageType kRevokedMessage{0x0402};
inline constexpr MessageType kReturnedMessage{0x0403};
inline constexpr MessageType kReplyMessage{0x0501};
inline constexpr MessageType kRevokeMessage{0x0502};
inline constexpr MessageType kRecallMessage{0x0503};
inline constexpr std::uint16_t kForHome = 0x04;
inline constexpr std::uint16_t kForUser = 0x05;

enum class Action : std::uint8_t { kRead = 1, kWrite, kOpen, kClose };

enum class Outcome : std::uint8_t {
  kDone = 1,
  kCopy,       // a read, and the user may keep the bytes under a lease
  kDelegated,  // an open: the file is the user's alone
  kElsewhere,  // this node is not the home, or does not know the sender's view
};

struct BlockName {
  LastingKey file;
  BlockNumber block{};

  friend auto operator<=>(const BlockName&, const BlockName&) = default;
};

struct FileRequest {
  // Grows with each request of a user's process: a home carries out none twice.
  std::uint64_t number = 0;
  Action action{};
  BlockName name;
};

struct FileReply {
  std::uint64_t number = 0;
  Outcome outcome{};
  std::uint64_t delegation = 0;
};

// A revocation or a recall, and its answer.
struct Notice {
  BlockName name;
  std::uint64_t number = 0;
};

Bytes encode(const FileRequest& request);
Bytes encode(const FileReply& reply);
Bytes encode(const Notice& notice);
// Nothing for a header that is none.
std::optional<FileRequest> decode_request(std::span<const std::byte> header);
std::optional<FileReply> decode_reply(std::span<const std::byte> header);
std::optional<Notice> decode_notice(std::span<const std::byte> header);

// Where the authoritative bytes of blocks lie. A write counts when it returns.
class BlockStore {
 public:
  virtual ~BlockStore() = default;
  virtual Bytes read(const BlockName& name) = 0;
  virtual void write(const BlockName& name, std::span<const std::byte> bytes) = 0;
};

struct OwnershipTerms {
  // A user keeps a copy for so long from when it asked; the home waits twice as long from when it
  // granted. So a user that does not answer holds a write up by no more than that.
  std::int64_t copy_ns = 1'000'000'000;
  // An unanswered message is sent again after this.
  std::int64_t again_ns = 100'000'000;
  // An operation that has not ended by then fails.
  std::int64_t operation_ns = 20'000'000'000;
};

}  // namespace cairn::cluster
