// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/name_change.h"

#include "base/check.h"
#include "service/durable_log/byte_stream.h"
#include "service/durable_log/log_record.h"

namespace cairn::durable {

namespace {

constexpr std::uint32_t kHasBefore = 1;
constexpr std::uint32_t kHasAfter = 2;
constexpr std::uint32_t kMayBeEmpty = 4;
constexpr std::uint32_t kFlagsKnown = kHasBefore | kHasAfter | kMayBeEmpty;

std::size_t bytes_of(const std::optional<NamedFile>& file) {
  return file ? 2 * 8 + 4 + file->handle.size() : 0;
}

std::size_t bytes_of(const NameChange& change) {
  return 2 * 4 + change.name.size() + bytes_of(change.before) + bytes_of(change.after) +
         (change.after ? 3 * 4 : 0);
}

void put(ByteSink& sink, const NamedFile& file) {
  CAIRN_CHECK(file.handle.size() <= kHandleBytesMax);
  sink.put(file.id.inode);
  sink.put(file.id.birth_ns);
  sink.put(static_cast<std::uint32_t>(file.handle.size()));
  for (const std::byte part : file.handle) sink.put(part);
}

std::optional<NamedFile> take_file(ByteSource& source) {
  NamedFile file;
  file.id.inode = source.take<std::uint64_t>();
  file.id.birth_ns = source.take<std::int64_t>();
  const auto handle_bytes = source.take<std::uint32_t>();
  if (handle_bytes > kHandleBytesMax) return std::nullopt;
  const auto handle = source.take_bytes(handle_bytes);
  file.handle.assign(handle.begin(), handle.end());
  return file;
}

bool is_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::optional<NameChange> take_change(ByteSource& source) {
  NameChange change;
  const auto name_bytes = source.take<std::uint32_t>();
  const auto flags = source.take<std::uint32_t>();
  if (name_bytes > kNameBytesMax || (flags & ~kFlagsKnown) != 0) return std::nullopt;
  const auto name = source.take_bytes(name_bytes);
  change.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  if (!is_name(change.name)) return std::nullopt;
  if ((flags & kHasBefore) != 0 && !(change.before = take_file(source))) return std::nullopt;
  if ((flags & kHasAfter) == 0) return change;
  if (!(change.after = take_file(source))) return std::nullopt;
  change.may_be_empty = (flags & kMayBeEmpty) != 0;
  change.mode = source.take<std::uint32_t>();
  change.user = source.take<std::uint32_t>();
  change.group = source.take<std::uint32_t>();
  return change;
}

}  // namespace

std::vector<std::byte> encode_names(std::span<const NameChange> changes) {
  std::size_t size = 0;
  for (const NameChange& change : changes) size += bytes_of(change);
  std::vector<std::byte> bytes(size);
  ByteSink sink(bytes);
  for (const NameChange& change : changes) {
    CAIRN_CHECK(is_name(change.name) && change.name.size() <= kNameBytesMax);
    sink.put(static_cast<std::uint32_t>(change.name.size()));
    sink.put((change.before ? kHasBefore : 0) | (change.after ? kHasAfter : 0) |
             (change.may_be_empty ? kMayBeEmpty : 0));
    for (const char letter : change.name) sink.put(letter);
    if (change.before) put(sink, *change.before);
    if (!change.after) continue;
    put(sink, *change.after);
    sink.put(change.mode);
    sink.put(change.user);
    sink.put(change.group);
  }
  CAIRN_CHECK(sink.used() == bytes.size());
  return bytes;
}

std::optional<std::vector<NameChange>> decode_names(std::span<const std::byte> bytes) {
  ByteSource source(bytes);
  std::vector<NameChange> changes;
  while (!source.is_at_end()) {
    auto change = take_change(source);
    if (!change || source.is_short()) return std::nullopt;
    changes.push_back(std::move(*change));
  }
  return changes;
}

}  // namespace cairn::durable
