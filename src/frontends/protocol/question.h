// SPDX-License-Identifier: Apache-2.0
// What a client asks the service in the request ring, as words of a slot. The result is that of
// protocol::Flushed: 0 or -errno.
//
// Drawn:  words[0]  | object : 32 | durable : 16 | type : 16 |
//         words[1]  | device or size : 64 |
//
// The service takes them apart in service/attachment/client_message.h, which believes none.
// Thread safety: values.
#pragma once

#include "frontends/protocol/protocol.h"
#include "memory/arena/request_ring.h"

namespace cairn::protocol {

// The size in a kNoteCut that says: the file has lost its last name, all of it is cut away.
inline constexpr std::uint64_t kCutAway = UINT64_MAX;

struct Question {
  Type type{};  // kFlush, kMeetUnserved, kMakeDurable, kNoteCut, kNoteRenamed or kSync
  ObjectIndex object = ObjectIndex::kNone;  // but for kSync
  bool durable = false;                     // kFlush: fsync the backing file too
  std::uint64_t device = 0;                 // kSync: st_dev of the file system; 0: all
  std::uint64_t size = 0;                   // kNoteCut: in bytes
};

constexpr QuestionWords words_of(const Question& question) {
  return {std::uint64_t{raw(question.object)} << 32 | std::uint64_t{question.durable} << 16 |
              static_cast<std::uint64_t>(question.type),
          question.type == Type::kNoteCut ? question.size : question.device};
}

}  // namespace cairn::protocol
