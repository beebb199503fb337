// SPDX-License-Identifier: Apache-2.0
// What a client has sent or asked, received and checked: the one place where bytes of client.sock
// and of the request ring become values.
//
// The words of a question in the request ring pass the same checks.
//
// A datagram is taken from the socket with all descriptors that came with it, and decoded into one
// of the alternatives below or into Malformed. Lengths, versions, numbers, texts and the count of
// descriptors are right in every other alternative; descriptors that no message asks for are
// closed with the datagram. A new type is a struct here, a case in decode() and a row in the test.
//
// Thread safety: functions without state. Ownership: a message owns its descriptor.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "frontends/protocol/question.h"
#include "memory/catalog/object_table.h"
#include "policy/arrays/dataset_news.h"
#include "policy/arrays/file_array.h"
#include "policy/arrays/packed_array.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

// One message as it came, with nothing checked yet.
struct Datagram {
  std::size_t length = 0;
  bool is_cut = false;  // longer than any message
  // The kernel gave fewer descriptors than were sent: more than we have room for, or this process
  // may open no more.
  bool lost_descriptors = false;
  pid_t sender = 0;  // of this message, as the kernel says: a vfork child uses its parent's socket
  std::vector<UniqueFd> descriptors;
  alignas(8) char bytes[protocol::kMessageBytesMax] = {};
};

enum class Received : std::uint8_t { kDatagram, kNothing, kClosed };

enum class Look : std::uint8_t {
  kTake,
  kPeek  // it stays, until drop_datagram() takes it
};

// The next datagram, without waiting. `otherwise` is the sender where the kernel names none.
Received receive_datagram(int socket, pid_t otherwise, Look look, Datagram* datagram);
void drop_datagram(int socket);
// Whether it is one that takes a slot, by its type alone.
bool is_greeting(const Datagram& datagram);
// Whether it is one whose answer ends its connection, by its type alone.
bool is_question(const Datagram& datagram);
// Whether it is one that a ledger's connection is answered, by its type alone.
bool asks_ledger(const Datagram& datagram);

namespace message {

struct Malformed {
  const char* reason;  // for the log
  // The peer may be an honest program of another installation, and gets an answer.
  bool is_of_another_version = false;
};
struct Hello {
  std::uint32_t run;
  std::uint32_t layout_version;
  std::string command;
  SlotClaim claim;  // its slot is any number: ClientTable knows what is offered
};
struct ObjectDescriptor {
  ObjectIndex object;  // live when the message was decoded
  bool is_lent;
  UniqueFd descriptor;  // none when it was lost on its way
  pid_t sender;
  std::int32_t number;  // the sender's, of the file; any
};
struct Discarded {
  ObjectIndex object;  // in range; the record may be free or another file's by now
};
struct Inherited {};
struct Foreign {
  pid_t sender;
  std::string command;
  std::string reason;
};
struct Flush {
  ObjectIndex object;  // live when the message was decoded
  bool durable;
};
struct Sync {
  std::uint64_t device;  // any number
};
struct Declined {};
struct Unserved {
  pid_t sender;
  std::uint32_t run;
  protocol::UnservedReason reason;
  std::string command;
};
struct KeepThrough {
  protocol::UnservedMessage told;  // its description is in range or 0
  UniqueFd file;                   // none when it was lost on its way
};
struct TakenOver {
  pid_t sender;
};
struct MeetUnserved {
  ObjectIndex object;  // live when the message was decoded
};
struct MakeDurable {
  ObjectIndex object;  // live when the message was decoded
};
struct NoteCut {
  ObjectIndex object;  // live when the message was decoded
  std::uint64_t size;  // any number
};
struct NoteRenamed {
  ObjectIndex object;  // live when the message was decoded
};
struct ArrayRead {
  ObjectIndex object;  // live when the message was decoded
  pid_t sender;
  std::int32_t descriptor;  // the sender's, of the file; any number
  arrays::FileArray array;  // which ends below 2^63 in the file
  arrays::Box box;          // of the array, and not empty
  bool was_kept;
};
struct ArrayNews {
  ObjectIndex object;  // live when the message was decoded
  pid_t sender;
  std::int32_t descriptor;   // the sender's, of the file; any number
  arrays::DatasetNews news;  // its numbers are those of arrays that may be in a file
};
struct PackedRead {
  ObjectIndex object;  // live when the message was decoded
  pid_t sender;
  std::int32_t descriptor;    // the sender's, of the file; any number
  arrays::PackedArray array;  // which has a grid
  arrays::Box box;            // of the array, and not empty
};
struct MakeNamesDurable {
  bool in_store;
  UniqueFd directory;  // of any kind; none when it was lost on its way
};

}  // namespace message

using ClientMessage =
    std::variant<message::Malformed, message::Hello, message::ObjectDescriptor, message::Discarded,
                 message::Inherited, message::Foreign, message::Flush, message::Sync,
                 message::Declined, message::Unserved, message::KeepThrough, message::TakenOver,
                 message::MeetUnserved, message::MakeDurable, message::NoteCut,
                 message::NoteRenamed, message::MakeNamesDurable, message::ArrayRead,
                 message::ArrayNews, message::PackedRead>;

// `descriptions`: how many open descriptions the node's table has.
ClientMessage decode(Datagram datagram, const ObjectTable& objects, std::uint32_t descriptions);

using ClientQuestion =
    std::variant<message::Malformed, message::Flush, message::Sync, message::MeetUnserved,
                 message::MakeDurable, message::NoteCut, message::NoteRenamed>;
// The same for a slot of the request ring; see frontends/protocol/question.h.
ClientQuestion decode(const QuestionWords& words, const ObjectTable& objects);

}  // namespace cairn::node
