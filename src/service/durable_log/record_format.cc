// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/record_format.h"

#include <cstring>

#define XXH_INLINE_ALL  // NOLINT(readability-identifier-naming): the library's name for it
#include <xxhash.h>

#include "base/check.h"
#include "service/durable_log/byte_stream.h"

namespace cairn::durable {

namespace {

constexpr std::size_t kSummedBytes = kRecordHeaderBytes - sizeof(std::uint64_t);

std::uint64_t header_checksum(std::uint64_t log, std::uint64_t segment, Bytes bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), log ^ (segment * 0x9e3779b97f4a7c15ULL));
}

}  // namespace

std::uint64_t payload_checksum(std::uint64_t log, Bytes payload) {
  return XXH3_64bits_withSeed(payload.data(), payload.size(), log);
}

HeaderImage encode_header(std::uint64_t log, const RecordHeader& header) {
  CAIRN_CHECK(header.payload_bytes <= kPayloadBytesMax);
  HeaderImage image{};
  ByteSink sink(image);
  sink.put(kRecordMagic);
  sink.put(static_cast<std::uint16_t>(header.kind));
  sink.put(header.flags);
  sink.put(header.payload_bytes);
  sink.put(std::uint32_t{0});
  sink.put(raw(header.lsn));
  sink.put(header.segment);
  sink.put(raw(header.object));
  sink.put(raw(header.durable));
  sink.put(header.time_ns);
  for (const std::uint64_t word : header.words) sink.put(word);
  sink.put(header.payload_sum);
  CAIRN_CHECK(sink.used() == kSummedBytes);
  sink.put(header_checksum(log, header.segment, Bytes(image).first(kSummedBytes)));
  return image;
}

std::optional<RecordHeader> decode_header(std::uint64_t log, std::uint64_t segment, Bytes bytes) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  ByteSource source(bytes.first(kRecordHeaderBytes));
  if (source.take<std::uint32_t>() != kRecordMagic) return std::nullopt;
  RecordHeader header;
  const auto kind = source.take<std::uint16_t>();
  header.flags = source.take<std::uint16_t>();
  header.payload_bytes = source.take<std::uint32_t>();
  const auto zero = source.take<std::uint32_t>();
  header.lsn = static_cast<Lsn>(source.take<std::uint64_t>());
  header.segment = source.take<std::uint64_t>();
  header.object = static_cast<LogObject>(source.take<std::uint64_t>());
  header.durable = static_cast<Lsn>(source.take<std::uint64_t>());
  header.time_ns = source.take<std::int64_t>();
  for (std::uint64_t& word : header.words) word = source.take<std::uint64_t>();
  header.payload_sum = source.take<std::uint64_t>();
  const auto sum = source.take<std::uint64_t>();
  CAIRN_CHECK(source.is_at_end());
  if (sum != header_checksum(log, segment, bytes.first(kSummedBytes))) return std::nullopt;
  // The rest cannot be wrong by accident; a version that knows more kinds has another number.
  if (header.segment != segment || zero != 0 || (header.flags & ~kFlagsAll) != 0 || kind == 0 ||
      kind > static_cast<std::uint16_t>(kRecordKindLast) ||
      header.payload_bytes > kPayloadBytesMax) {
    return std::nullopt;
  }
  header.kind = static_cast<RecordKind>(kind);
  return header;
}

std::optional<RecordHeader> decode_segment_header(std::uint64_t log, Bytes bytes) {
  // Where the segment's number stands: after magic, kind, flags, length, zero and the Lsn.
  constexpr std::size_t kSegmentAt = 4 * 4 + 8;
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  std::uint64_t segment = 0;
  std::memcpy(&segment, bytes.data() + kSegmentAt, sizeof segment);
  auto header = decode_header(log, segment, bytes);
  if (!header || header->kind != RecordKind::kSegment || segment == 0) return std::nullopt;
  return header;
}

std::array<std::byte, kLogNameBytes> encode_log_name(const LogName& name) {
  std::array<std::byte, kLogNameBytes> bytes{};
  ByteSink sink(bytes);
  sink.put(name.uuid[0]);
  sink.put(name.uuid[1]);
  sink.put(name.created_ns);
  CAIRN_CHECK(sink.used() == bytes.size());
  return bytes;
}

std::optional<LogName> decode_log_name(Bytes segment) {
  if (segment.size() < kSegmentBegin) return std::nullopt;
  const Bytes payload = segment.subspan(kRecordHeaderBytes, kLogNameBytes);
  ByteSource source(payload);
  LogName name;
  name.uuid[0] = source.take<std::uint64_t>();
  name.uuid[1] = source.take<std::uint64_t>();
  name.created_ns = source.take<std::int64_t>();
  const auto header = decode_segment_header(name.log(), segment);
  if (!header || header->payload_bytes != kLogNameBytes ||
      header->payload_sum != payload_checksum(name.log(), payload)) {
    return std::nullopt;
  }
  return name;
}

std::vector<std::byte> encode_object(const ObjectStatement& object) {
  const FileIdentity& identity = object.identity;
  CAIRN_CHECK(identity.path.size() <= kPathBytesMax && identity.handle.size() <= kHandleBytesMax);
  std::vector<std::byte> bytes(7 * 8 + 2 * 4 + identity.path.size() + identity.handle.size());
  ByteSink sink(bytes);
  sink.put(static_cast<std::uint64_t>(identity.key.kind));
  sink.put(raw(identity.key.store));
  sink.put(identity.key.id.inode);
  sink.put(identity.key.id.birth_ns);
  sink.put(raw(identity.store));
  sink.put(object.window.since_ns);
  sink.put(object.window.boot);
  sink.put(static_cast<std::uint32_t>(identity.path.size()));
  sink.put(static_cast<std::uint32_t>(identity.handle.size()));
  for (const char letter : identity.path) sink.put(letter);
  for (const std::byte part : identity.handle) sink.put(part);
  CAIRN_CHECK(sink.used() == bytes.size());
  return bytes;
}

std::optional<ObjectStatement> decode_object(const RecordHeader& header, Bytes payload) {
  ByteSource source(payload);
  ObjectStatement object;
  FileIdentity& identity = object.identity;
  const auto kind = source.take<std::uint64_t>();
  identity.key.store = StoreId{source.take<std::uint64_t>()};
  identity.key.id.inode = source.take<std::uint64_t>();
  identity.key.id.birth_ns = source.take<std::int64_t>();
  identity.store = StoreName{source.take<std::uint64_t>()};
  object.window.since_ns = source.take<std::int64_t>();
  object.window.boot = source.take<std::uint64_t>();
  const auto path_bytes = source.take<std::uint32_t>();
  const auto handle_bytes = source.take<std::uint32_t>();
  if (kind > static_cast<std::uint64_t>(ObjectKind::kRegion) || path_bytes > kPathBytesMax ||
      handle_bytes > kHandleBytesMax) {
    return std::nullopt;
  }
  identity.key.kind = static_cast<ObjectKind>(kind);
  const Bytes path = source.take_bytes(path_bytes);
  const Bytes handle = source.take_bytes(handle_bytes);
  if (!source.is_at_end()) return std::nullopt;
  identity.path.assign(reinterpret_cast<const char*>(path.data()), path.size());
  identity.handle.assign(handle.begin(), handle.end());
  object.store = {header.words[1], static_cast<std::int64_t>(header.words[2])};
  return object;
}

}  // namespace cairn::durable
