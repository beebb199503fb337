// SPDX-License-Identifier: Apache-2.0
#include "cluster/ownership/ownership_messages.h"

namespace cairn::cluster {

namespace {

void put_name(ByteWriter& writer, const BlockName& name) {
  writer.put(name.file.kind);
  writer.put(name.file.store);
  writer.put(name.file.id.inode);
  writer.put(name.file.id.birth_ns);
  writer.put(name.block);
}

BlockName take_name(ByteReader& reader) {
  BlockName name;
  name.file.kind = reader.take<ObjectKind>();
  name.file.store = reader.take<StoreName>();
  name.file.id.inode = reader.take<std::uint64_t>();
  name.file.id.birth_ns = reader.take<std::int64_t>();
  name.block = reader.take<BlockNumber>();
  return name;
}

}  // namespace

Bytes encode(const FileRequest& request) {
  ByteWriter writer;
  writer.put(request.number);
  writer.put(request.action);
  put_name(writer, request.name);
  return writer.take();
}

Bytes encode(const FileReply& reply) {
  ByteWriter writer;
  writer.put(reply.number);
  writer.put(reply.outcome);
  writer.put(reply.delegation);
  return writer.take();
}

Bytes encode(const Notice& notice) {
  ByteWriter writer;
  put_name(writer, notice.name);
  writer.put(notice.number);
  return writer.take();
}

std::optional<FileRequest> decode_request(std::span<const std::byte> header) {
  ByteReader reader(header);
  FileRequest request;
  request.number = reader.take<std::uint64_t>();
  request.action = reader.take<Action>();
  request.name = take_name(reader);
  const bool is_known = request.action >= Action::kRead && request.action <= Action::kClose;
  if (!reader.is_at_end() || !is_known) return std::nullopt;
  return request;
}

std::optional<FileReply> decode_reply(std::span<const std::byte> header) {
  ByteReader reader(header);
  FileReply reply;
  reply.number = reader.take<std::uint64_t>();
  reply.outcome = reader.take<Outcome>();
  reply.delegation = reader.take<std::uint64_t>();
  const bool is_known = reply.outcome >= Outcome::kDone && reply.outcome <= Outcome::kElsewhere;
  if (!reader.is_at_end() || !is_known) return std::nullopt;
  return reply;
}

std::optional<Notice> decode_notice(std::span<const std::byte> header) {
  ByteReader reader(header);
  Notice notice;
  notice.name = take_name(reader);
  notice.number = reader.take<std::uint64_t>();
  if (!reader.is_at_end()) return std::nullopt;
  return notice;
}

}  // namespace cairn::cluster
