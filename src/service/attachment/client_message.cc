// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/client_message.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

namespace cairn::node {
namespace {

using message::Malformed;
using protocol::Type;

// No message carries more than one descriptor. What does not fit here the kernel closes itself.
constexpr std::size_t kDescriptorsTaken = 4;

void take_descriptors(const cmsghdr& item, std::vector<UniqueFd>* descriptors) {
  const std::size_t count = (item.cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (std::size_t index = 0; index < count; ++index) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(&item) + index * sizeof fd, sizeof fd);
    descriptors->emplace_back(fd);
  }
}

template <typename T>
bool read_whole(const Datagram& datagram, T* value) {
  if (datagram.length != sizeof(T)) return false;
  std::memcpy(value, datagram.bytes, sizeof(T));
  return true;
}

// A name that goes into the log and to terminals. Nothing when it does not end within its field.
template <std::size_t Size>
std::optional<std::string> text_of(const char (&field)[Size]) {
  const std::size_t length = ::strnlen(field, Size);
  if (length == Size) return std::nullopt;
  std::string text(field, length);
  const auto is_control = [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
  };
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return text;
}

bool is_flag(std::uint32_t value) { return value <= 1; }

ClientMessage decode_hello(const Datagram& datagram) {
  protocol::Hello hello;
  if (!read_whole(datagram, &hello)) return Malformed{"a greeting of another length"};
  std::optional<std::string> command = text_of(hello.command);
  if (!command) return Malformed{"a command's name without an end"};
  const SlotClaim& claim = hello.claim;
  if (claim && (claim.number == 0 || claim.token == 0))
    return Malformed{"a claim without a number or a token"};
  return message::Hello{hello.run, hello.layout_version, std::move(*command), claim};
}

ClientMessage decode_foreign(const Datagram& datagram) {
  protocol::ForeignMessage foreign;
  if (!read_whole(datagram, &foreign)) return Malformed{"a program's name of another length"};
  std::optional<std::string> command = text_of(foreign.command);
  if (!command) return Malformed{"a program's name without an end"};
  std::optional<std::string> reason = text_of(foreign.reason);
  if (!reason) return Malformed{"a reason without an end"};
  return message::Foreign{datagram.sender, std::move(*command), std::move(*reason)};
}

UniqueFd descriptor_of(Datagram& datagram) {
  return datagram.descriptors.empty() ? UniqueFd() : std::move(datagram.descriptors.front());
}

ClientMessage decode_unserved(Type type, Datagram& datagram, std::uint32_t descriptions) {
  protocol::UnservedMessage told;
  if (!read_whole(datagram, &told)) return Malformed{"an unserved program's of another length"};
  if (told.reason >= protocol::UnservedReason::kCount) return Malformed{"an unknown reason"};
  if (told.description >= descriptions) return Malformed{"a description that no table has"};
  std::optional<std::string> command = text_of(told.command);
  if (!command) return Malformed{"a program's name without an end"};
  if (type == Type::kKeepThrough) return message::KeepThrough{told, descriptor_of(datagram)};
  return message::Unserved{datagram.sender, told.run, told.reason, std::move(*command)};
}

bool is_about_log(Type type) {
  return type == Type::kMakeDurable || type == Type::kNoteCut || type == Type::kNoteRenamed;
}

// Why the service cannot work on what stands there as an object's number; null when it can.
const char* fault_of(std::uint32_t number, const ObjectTable& objects) {
  const auto object = static_cast<ObjectIndex>(number);
  if (!objects.is_index(object)) return "an object that no table has";
  if (!objects.at(object).has(kObjectLive)) return "an object that is not in use";
  return nullptr;
}

// The messages that name an object.
ClientMessage decode_object(Type type, Datagram& datagram, const ObjectTable& objects) {
  protocol::ObjectMessage about;
  if (!read_whole(datagram, &about)) return Malformed{"an object's message of another length"};
  if (!is_flag(about.durable) || !is_flag(about.is_lent))
    return Malformed{"a flag that is neither 0 nor 1"};
  if (type == Type::kMakeNamesDurable)
    return message::MakeNamesDurable{about.durable != 0, descriptor_of(datagram)};
  const auto object = static_cast<ObjectIndex>(about.object);
  const char* fault = fault_of(about.object, objects);
  if (type == Type::kDiscarded && objects.is_index(object)) return message::Discarded{object};
  if (fault != nullptr) return Malformed{fault};
  if (type == Type::kFlush) return message::Flush{object, about.durable != 0};
  if (type == Type::kMeetUnserved) return message::MeetUnserved{object};
  if (type == Type::kMakeDurable) return message::MakeDurable{object};
  if (type == Type::kNoteCut) return message::NoteCut{object, about.size};
  if (type == Type::kNoteRenamed) return message::NoteRenamed{object};
  return message::ObjectDescriptor{object, about.is_lent != 0, descriptor_of(datagram),
                                   datagram.sender, about.descriptor};
}

// Why that is no box of an array in a file; null when it is one.
const char* fault_of(const arrays::FileArray& array, const arrays::Box& box) {
  constexpr std::uint64_t kEndMax = std::uint64_t{1} << 62;
  std::uint64_t bytes = array.cell_bytes;
  if (bytes == 0 || bytes > kEndMax || array.offset > kEndMax) return "cells that no file has";
  for (std::size_t at = 0; at < array.shape.size(); ++at) {
    const std::uint64_t size = array.shape[at];
    if (size == 0 || bytes > kEndMax / size) return "an array that no file has";
    bytes *= size;
    if (box.count[at] == 0 || box.count[at] > size || box.first[at] > size - box.count[at])
      return "a box beyond its array";
  }
  return nullptr;
}

ClientMessage decode_array_read(const Datagram& datagram, const ObjectTable& objects) {
  protocol::ArrayReadMessage told;
  if (!read_whole(datagram, &told)) return Malformed{"an array's message of another length"};
  if (!is_flag(told.was_kept)) return Malformed{"a flag that is neither 0 nor 1"};
  if (const char* fault = fault_of(told.object, objects); fault != nullptr) return Malformed{fault};
  const std::size_t dimensions = told.dimensions;
  if (dimensions == 0 || dimensions > protocol::ArrayReadMessage::kDimensionsMax)
    return Malformed{"an array of no dimensions, or of too many"};
  const auto numbers = [dimensions](const std::uint64_t* from) {
    return arrays::Coordinates(std::span(from, dimensions));
  };
  message::ArrayRead read{static_cast<ObjectIndex>(told.object),
                          datagram.sender,
                          told.descriptor,
                          {numbers(told.shape), told.cell_bytes, told.offset},
                          {numbers(told.first), numbers(told.count)},
                          told.was_kept != 0};
  if (const char* fault = fault_of(read.array, read.box); fault != nullptr) return Malformed{fault};
  return read;
}

// Why those are no chunks of an array; null when they are.
const char* fault_of_chunk(const arrays::DatasetNews& news) {
  constexpr std::uint64_t kCellsMax = std::uint64_t{1} << 62;
  if (news.chunk.size() != 0 && news.layout != arrays::Layout::kChunked)
    return "chunks of an array without";
  for (const std::uint64_t cells : news.chunk.all()) {
    if (cells == 0 || cells > kCellsMax) return "chunks that no array has";
  }
  return nullptr;
}

const char* fault_of(const protocol::ArrayNewsMessage& told) {
  if (told.layout >= static_cast<std::uint32_t>(arrays::Layout::kCount)) return "an unknown layout";
  if (told.unfit != 0 && (told.unfit >= arrays::kLeftReasons ||
                          !is_of_dataset(static_cast<arrays::LeftReason>(told.unfit))))
    return "an unknown reason";
  if (!is_flag(told.has_chunks)) return "a flag that is neither 0 nor 1";
  if (told.dimensions > protocol::ArrayNewsMessage::kDimensionsMax)
    return "an array of too many dimensions";
  return nullptr;
}

ClientMessage decode_array_news(const Datagram& datagram, const ObjectTable& objects) {
  static_assert(arrays::kLeftReasons <= protocol::ArrayNewsMessage::kReasonsMax);
  protocol::ArrayNewsMessage told;
  if (!read_whole(datagram, &told)) return Malformed{"an array's news of another length"};
  if (const char* fault = fault_of(told.object, objects); fault != nullptr) return Malformed{fault};
  if (const char* fault = fault_of(told); fault != nullptr) return Malformed{fault};
  std::optional<std::string> name = text_of(told.name);
  if (!name) return Malformed{"an array's name without an end"};
  arrays::DatasetNews news;
  news.name = std::move(*name);
  news.layout = static_cast<arrays::Layout>(told.layout);
  news.unfit = static_cast<arrays::LeftReason>(told.unfit);
  news.cell_bytes = told.cell_bytes;
  news.offset = told.offset;
  std::copy_n(told.token, news.token.size(), news.token.begin());
  news.shape = arrays::Coordinates(std::span(told.shape, told.dimensions));
  if (told.has_chunks != 0)
    news.chunk = arrays::Coordinates(std::span(told.chunk, told.dimensions));
  if (told.dimensions != 0) {
    const arrays::FileArray array{news.shape, news.cell_bytes, news.offset};
    const char* fault = fault_of(array, arrays::whole(news.shape));
    if (fault == nullptr) fault = fault_of_chunk(news);
    if (fault != nullptr) return Malformed{fault};
  }
  for (const std::uint32_t filter : told.filters) {
    if (filter == 0) break;
    news.filters.push_back(filter);
  }
  news.served_reads = told.served_reads;
  news.served_bytes = told.served_bytes;
  std::copy_n(told.left_reads, arrays::kLeftReasons, news.left_reads.begin());
  return message::ArrayNews{static_cast<ObjectIndex>(told.object), datagram.sender, told.descriptor,
                            std::move(news)};
}

ClientMessage decode_packed_read(const Datagram& datagram, const ObjectTable& objects) {
  protocol::PackedReadMessage told;
  if (!read_whole(datagram, &told)) return Malformed{"a packed array's message of another length"};
  if (const char* fault = fault_of(told.object, objects); fault != nullptr) return Malformed{fault};
  const std::size_t dimensions = told.dimensions;
  if (dimensions == 0 || dimensions > protocol::PackedReadMessage::kDimensionsMax)
    return Malformed{"an array of no dimensions, or of too many"};
  const auto* const end = std::find(std::begin(told.filters), std::end(told.filters), 0U);
  const auto filters = arrays::FilterList::of(std::span(std::begin(told.filters), end));
  if (!filters) return Malformed{"filters that only a library undoes"};
  const auto numbers = [dimensions](const std::uint64_t* from) {
    return arrays::Coordinates(std::span(from, dimensions));
  };
  arrays::PackedArray array{.shape = numbers(told.shape),
                            .chunk = numbers(told.chunk),
                            .cell_bytes = told.cell_bytes,
                            .filters = *filters};
  std::copy_n(told.token, array.token.size(), array.token.begin());
  arrays::Box box{numbers(told.first), numbers(told.count)};
  if (const char* fault = fault_of(arrays::FileArray{array.shape, array.cell_bytes, 0}, box);
      fault != nullptr)
    return Malformed{fault};
  if (!array.grid()) return Malformed{"chunks that are not unpacked"};
  return message::PackedRead{static_cast<ObjectIndex>(told.object), datagram.sender,
                             told.descriptor, array, box};
}

// The messages that say no more than their type.
ClientMessage decode_header(Type type, const Datagram& datagram) {
  if (datagram.length != sizeof(protocol::Header))
    return Malformed{"a bare message of another length"};
  if (type == Type::kDeclined) return message::Declined{};
  if (type == Type::kTakenOver) return message::TakenOver{datagram.sender};
  return message::Inherited{};
}

// How many descriptors the message carries: exactly so many, no fewer and no more.
std::size_t descriptors_of(Type type) {
  const bool has_one = type == Type::kObjectDescriptor || type == Type::kKeepThrough ||
                       type == Type::kMakeNamesDurable;
  return has_one ? 1 : 0;
}

std::optional<Type> type_of(const Datagram& datagram) {
  protocol::Header header;
  if (datagram.length < sizeof header) return std::nullopt;
  std::memcpy(&header, datagram.bytes, sizeof header);
  return header.type;
}

// A process that ends with something unread has the kernel report ECONNRESET to us, once, before
// what that process had sent: its messages follow.
bool is_worth_another_try(int error) { return error == EINTR || error == ECONNRESET; }

}  // namespace

void drop_datagram(int socket) {
  char byte = 0;
  while (::recv(socket, &byte, sizeof byte, MSG_DONTWAIT) < 0 && is_worth_another_try(errno)) {
  }
}

bool is_greeting(const Datagram& datagram) { return type_of(datagram) == Type::kHello; }

bool is_question(const Datagram& datagram) {
  const std::optional<Type> type = type_of(datagram);
  return type == Type::kFlush || type == Type::kSync || type == Type::kMeetUnserved ||
         type == Type::kMakeNamesDurable || (type && is_about_log(*type));
}

bool asks_ledger(const Datagram& datagram) {
  const std::optional<Type> type = type_of(datagram);
  return type == Type::kUnserved || type == Type::kKeepThrough;
}

Received receive_datagram(int socket, pid_t otherwise, Look look, Datagram* datagram) {
  iovec part{datagram->bytes, sizeof datagram->bytes};
  alignas(cmsghdr) char
      control[CMSG_SPACE(sizeof(int) * kDescriptorsTaken) + CMSG_SPACE(sizeof(ucred))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t length = 0;
  do {
    length = ::recvmsg(socket, &header,
                       MSG_DONTWAIT | MSG_CMSG_CLOEXEC | (look == Look::kPeek ? MSG_PEEK : 0));
  } while (length < 0 && is_worth_another_try(errno));
  if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::kNothing;
  if (length < 0) return Received::kClosed;
  datagram->length = static_cast<std::size_t>(length);
  datagram->is_cut = (header.msg_flags & MSG_TRUNC) != 0;
  datagram->lost_descriptors = (header.msg_flags & MSG_CTRUNC) != 0;
  datagram->sender = otherwise;
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET) continue;
    if (item->cmsg_type == SCM_RIGHTS) take_descriptors(*item, &datagram->descriptors);
    if (item->cmsg_type == SCM_CREDENTIALS && item->cmsg_len >= CMSG_LEN(sizeof(ucred))) {
      ucred credentials{};
      std::memcpy(&credentials, CMSG_DATA(item), sizeof credentials);
      if (credentials.pid > 0) datagram->sender = credentials.pid;
    }
  }
  // An empty datagram says no more than a closed socket.
  return length == 0 ? Received::kClosed : Received::kDatagram;
}

ClientMessage decode(Datagram datagram, const ObjectTable& objects, std::uint32_t descriptions) {
  protocol::Header header;
  if (datagram.length < sizeof header) return Malformed{"a message shorter than its header"};
  std::memcpy(&header, datagram.bytes, sizeof header);
  if (header.magic != protocol::kMagic) return Malformed{"a message of something else"};
  if (header.version != protocol::kVersion) return Malformed{"another version", true};
  if (datagram.is_cut) return Malformed{"a message longer than any"};
  const std::size_t wanted = descriptors_of(header.type);
  const bool has_lost_its_own =
      wanted == 1 && datagram.descriptors.empty() && datagram.lost_descriptors;
  if (!has_lost_its_own && (datagram.lost_descriptors || datagram.descriptors.size() != wanted))
    return Malformed{"more or fewer descriptors than its type has"};
  switch (header.type) {
    case Type::kHello:
      return decode_hello(datagram);
    case Type::kObjectDescriptor:
    case Type::kDiscarded:
    case Type::kFlush:
    case Type::kMeetUnserved:
    case Type::kMakeDurable:
    case Type::kNoteCut:
    case Type::kNoteRenamed:
    case Type::kMakeNamesDurable:
      return decode_object(header.type, datagram, objects);
    case Type::kInherited:
    case Type::kDeclined:
    case Type::kTakenOver:
      return decode_header(header.type, datagram);
    case Type::kUnserved:
    case Type::kKeepThrough:
      return decode_unserved(header.type, datagram, descriptions);
    case Type::kForeign:
      return decode_foreign(datagram);
    case Type::kSync: {
      protocol::SyncMessage sync;
      if (!read_whole(datagram, &sync)) return Malformed{"a request to sync of another length"};
      return message::Sync{sync.device};
    }
    case Type::kArrayRead:
      return decode_array_read(datagram, objects);
    case Type::kArrayNews:
      return decode_array_news(datagram, objects);
    case Type::kPackedRead:
      return decode_packed_read(datagram, objects);
    case Type::kWelcome:
    case Type::kRefused:
    case Type::kFlushed:
      return Malformed{"a message that only the service sends"};
  }
  return Malformed{"a message of an unknown type"};
}

ClientQuestion decode(const QuestionWords& words, const ObjectTable& objects) {
  const auto type = static_cast<Type>(words[0] & UINT16_MAX);
  const auto durable = static_cast<std::uint32_t>(words[0] >> 16 & UINT16_MAX);
  const auto number = static_cast<std::uint32_t>(words[0] >> 32);
  if (!is_flag(durable)) return Malformed{"something with a flag that is neither 0 nor 1"};
  if (type == Type::kSync) return message::Sync{words[1]};
  if (type != Type::kFlush && type != Type::kMeetUnserved && !is_about_log(type))
    return Malformed{"what the service does not answer"};
  if (const char* fault = fault_of(number, objects); fault != nullptr) return Malformed{fault};
  const auto object = static_cast<ObjectIndex>(number);
  if (type == Type::kFlush) return message::Flush{object, durable != 0};
  if (type == Type::kMakeDurable) return message::MakeDurable{object};
  if (type == Type::kNoteCut) return message::NoteCut{object, words[1]};
  if (type == Type::kNoteRenamed) return message::NoteRenamed{object};
  return message::MeetUnserved{object};
}

}  // namespace cairn::node
