// SPDX-License-Identifier: Apache-2.0
// The wire format between a client and the node service: SEQPACKET messages on client.sock, one
// struct each.
//
// A client sends kHello and gets one kWelcome with the descriptors of the segments and pool files
// (order: control, data, tiers 1...). A client that finds the memory by itself (MemoryNotice) and
// takes an offered slot in it (memory/arena/slot_offer.h) gets no answer. After that the connection
// is one-way, client to service. The service knows the peer by SO_PEERCRED and watches its pidfd.
//
// An attached process asks (kFlush, kSync, kMeetUnserved, kMakeDurable, kNoteCut, kNoteRenamed) in
// the request ring of the node's memory; see frontends/protocol/question.h. A process that finds no
// slot there, or has not attached, asks on a connection of its own, and the service answers
// kFlushed.
//
// A process tells of files that it uses past the buffers on a *ledger connection* (kUnserved,
// kKeepThrough), without a greeting and without a slot. It stays open, in children and through
// exec, as long as anybody may have those files open; see frontends/client/ledger_connection.h. A
// service that has no room for the connection closes it after the answer, and keeps the files for
// good. EAGAIN as the answer to kKeepThrough: there was no number for the descriptor just then.
//
// Both sides check magic, version and size of every message. The service decodes them in one place
// (service/attachment/client_message.h). Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "memory/tiers/node_memory.h"

namespace cairn::protocol {

inline constexpr std::uint32_t kMagic = 0x4e524943;
inline constexpr std::uint16_t kVersion = 10;

enum class Type : std::uint16_t {
  kHello = 1,  // Hello -> Welcome (+ descriptors) or Refused
  kWelcome,
  kRefused,
  // ObjectMessage + one descriptor: dirty data of the object can be stored through it
  kObjectDescriptor,
  kDiscarded,  // ObjectMessage: the object was unlinked and its data dropped; close the descriptor
  // Header alone: this process image has taken over what its pid had before exec: reap the old slot
  kInherited,
  kForeign,  // ForeignMessage: a program that cannot be intercepted is about to run in this pid
  // ObjectMessage on a new connection -> Flushed; where no slot of the request ring is to be had
  kFlush,
  kFlushed,
  kSync,         // SyncMessage on a new connection -> Flushed
  kDeclined,     // Header: the process cannot use its welcome; its slot is free again
  kUnserved,     // UnservedMessage on a ledger connection -> Flushed: all dirty data is stored
  kKeepThrough,  // UnservedMessage + one descriptor on a ledger connection -> Flushed
  // Header on a ledger connection that came through exec: the new image has told of its files anew
  kTakenOver,
  kMeetUnserved,  // ObjectMessage on a new connection -> Flushed: see UnservedBoard::keys
  kMakeDurable,   // the same: the object is to be durable at its own level
  kNoteCut,       // the same: the object is about to be cut to `size`
  kNoteRenamed,   // the same: the object has another name
  // ObjectMessage with one descriptor, of a directory, on a new connection -> Flushed: its names
  // are durable; `durable`: in the store
  kMakeNamesDurable,
  kArrayRead,   // ArrayReadMessage: the program reads a box of an array; nothing is waited for
  kArrayNews,   // ArrayNewsMessage: what array it reads, and how that went; nothing is waited for
  kPackedRead,  // PackedReadMessage: it has read a box of a packed array; nothing is waited for
};

struct Header {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  Type type{};
};

struct Hello {
  Header header{kMagic, kVersion, Type::kHello};
  std::uint32_t run = 0;  // CAIRN_RUN, 0 when unset
  std::uint32_t layout_version = kLayoutVersion;
  std::int32_t pid = 0;   // as the client sees itself; the service believes SO_PEERCRED
  SlotClaim claim;        // the client takes this slot by itself: no answer if it gets it
  char command[48] = {};  // /proc/self/comm or argv[0], with its end
};

// The file beside client.sock that says where the node's memory is: numbers of descriptors of the
// service, which a process opens through /proc as far as the kernel lets it. The directory is the
// user's own, so a client believes the file as it believes the service.
struct MemoryNotice {
  struct File {
    std::int32_t number = -1;  // -1: there is none
    std::int32_t flags = 0;    // to open it with
    std::uint64_t inode = 0;
    std::uint32_t device_major = 0;  // of the inode
    std::uint32_t device_minor = 0;
  };
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t reserved = 0;
  std::uint32_t layout_version = kLayoutVersion;
  std::int32_t pid = 0;  // of the service: that of its connections, else the file is an older one's
  MemoryShape shape;
  File control;
  File data;
  File tiers[kTiersMax];
};
static_assert(std::is_trivially_copyable_v<MemoryNotice>);
inline constexpr char kNoticeSuffix[] = ".memory";

struct Welcome {
  Header header{kMagic, kVersion, Type::kWelcome};
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  MemoryShape shape;
};

// Why a process, or one file of it, works past the buffers.
enum class UnservedReason : std::uint32_t {
  kNone = 0,
  kNoSlot,         // all slots are taken (clients.max)
  kNoMemory,       // the process could not map the node's memory
  kNoDescriptors,  // or had no room for the descriptors
  kOtherVersion,
  kTableFull,  // of objects, open descriptions or holds: this file only
  kFailed,     // a check inside the library has failed in this process
  kNoNumbers,  // the service can have too few descriptors open for one process more
  kCount
};

struct Refused {
  Header header{kMagic, kVersion, Type::kRefused};
  UnservedReason code{};
  char reason[232] = {};
};

struct ObjectMessage {
  Header header;
  std::uint32_t object = 0;   // ObjectIndex; kMakeNamesDurable: 0
  std::uint32_t durable = 0;  // kFlush: fsync the backing file too; kMakeNamesDurable
  // kObjectDescriptor: the client's own description, whose locks must not outlive its closes.
  std::uint32_t is_lent = 0;
  // kObjectDescriptor: the client's own number of the file, in case that the descriptor is lost.
  std::int32_t descriptor = -1;
  std::uint64_t size = 0;  // kNoteCut
};

struct SyncMessage {
  Header header{kMagic, kVersion, Type::kSync};
  std::uint64_t device = 0;  // st_dev of the file system; 0: all
};

struct ForeignMessage {
  Header header{kMagic, kVersion, Type::kForeign};
  char command[112] = {};
  char reason[48] = {};
};

struct UnservedMessage {
  Header header;
  std::uint32_t run = 0;
  UnservedReason reason{};
  // kKeepThrough: the open description that the process was born with and that the descriptor
  // works for; its offset is to be the kernel's from here on. 0: none.
  std::uint32_t description = 0;
  std::uint32_t generation = 0;
  char command[112] = {};  // kUnserved
};

// A box of an array whose cells lie in the file one behind the other. Units: cells, and bytes where
// it says so.
struct ArrayReadMessage {
  static constexpr std::size_t kDimensionsMax = 32;
  Header header{kMagic, kVersion, Type::kArrayRead};
  std::uint32_t object = 0;      // ObjectIndex of the file
  std::int32_t descriptor = -1;  // the client's own number of it
  std::uint32_t dimensions = 0;
  std::uint32_t was_kept = 0;  // the tiers had the box as a region
  std::uint64_t cell_bytes = 0;
  std::uint64_t offset = 0;  // of the first cell, bytes
  std::uint64_t shape[kDimensionsMax] = {};
  std::uint64_t first[kDimensionsMax] = {};
  std::uint64_t count[kDimensionsMax] = {};
};

// A dataset of a file, and its reads since the news before (policy/arrays/dataset_news.h). Units:
// cells, and bytes where it says so.
struct ArrayNewsMessage {
  static constexpr std::size_t kDimensionsMax = ArrayReadMessage::kDimensionsMax;
  static constexpr std::size_t kFiltersMax = 8;
  static constexpr std::size_t kReasonsMax = 24;
  Header header{kMagic, kVersion, Type::kArrayNews};
  std::uint32_t object = 0;      // ObjectIndex of the file
  std::int32_t descriptor = -1;  // the client's own number of it
  std::uint32_t dimensions = 0;  // 0: not known
  std::uint32_t has_chunks = 0;
  std::uint32_t layout = 0;
  std::uint32_t unfit = 0;
  std::uint64_t cell_bytes = 0;
  std::uint64_t offset = 0;  // of the first cell, bytes
  std::uint64_t token[2] = {};
  std::uint64_t shape[kDimensionsMax] = {};
  std::uint64_t chunk[kDimensionsMax] = {};
  std::uint32_t filters[kFiltersMax] = {};  // behind the last of them 0
  std::uint64_t served_bytes = 0;
  std::uint32_t served_reads = 0;
  std::uint32_t left_reads[kReasonsMax] = {};
  char name[164] = {};  // with its end; of a longer one the last part, behind "..."
};

// A box of an array whose chunks lie packed in the file. Where they lie is in a region of the file
// that policy/arrays/packed_array.h has the name of. Units: cells, and bytes where it says so.
struct PackedReadMessage {
  static constexpr std::size_t kDimensionsMax = ArrayReadMessage::kDimensionsMax;
  static constexpr std::size_t kFiltersMax = 3;
  Header header{kMagic, kVersion, Type::kPackedRead};
  std::uint32_t object = 0;      // ObjectIndex of the file
  std::int32_t descriptor = -1;  // the client's own number of it
  std::uint32_t dimensions = 0;
  std::uint32_t filters[kFiltersMax] = {};  // in the order of packing; behind the last of them 0
  std::uint64_t cell_bytes = 0;
  std::uint64_t token[2] = {};
  std::uint64_t shape[kDimensionsMax] = {};
  std::uint64_t chunk[kDimensionsMax] = {};  // of the file
  std::uint64_t first[kDimensionsMax] = {};
  std::uint64_t count[kDimensionsMax] = {};
};

struct Flushed {
  Header header{kMagic, kVersion, Type::kFlushed};
  std::int32_t error = 0;   // 0 or errno
  std::uint32_t value = 0;  // kKeepThrough with a description: O_APPEND, if that is its flag
};

inline constexpr std::size_t kMessageBytesMax = 1280;

// A message is its bytes: it fits the buffers of both sides and begins with its header.
template <typename Message>
inline constexpr bool kIsSound =
    std::is_trivially_copyable_v<Message> && std::is_standard_layout_v<Message> &&
    sizeof(Message) <= kMessageBytesMax;
static_assert(sizeof(Header) == 8 && std::is_trivially_copyable_v<Header>);
static_assert(kIsSound<Hello> && offsetof(Hello, header) == 0);
static_assert(kIsSound<Welcome> && offsetof(Welcome, header) == 0);
static_assert(kIsSound<Refused> && offsetof(Refused, header) == 0);
static_assert(kIsSound<ObjectMessage> && offsetof(ObjectMessage, header) == 0);
static_assert(kIsSound<SyncMessage> && offsetof(SyncMessage, header) == 0);
static_assert(kIsSound<ForeignMessage> && offsetof(ForeignMessage, header) == 0);
static_assert(kIsSound<UnservedMessage> && offsetof(UnservedMessage, header) == 0);
static_assert(kIsSound<ArrayReadMessage> && offsetof(ArrayReadMessage, header) == 0);
static_assert(kIsSound<ArrayNewsMessage> && offsetof(ArrayNewsMessage, header) == 0);
static_assert(kIsSound<PackedReadMessage> && offsetof(PackedReadMessage, header) == 0);
static_assert(kIsSound<Flushed> && offsetof(Flushed, header) == 0);
static_assert(sizeof(Welcome) != sizeof(Refused), "a client tells them by their size, too");

}  // namespace cairn::protocol
