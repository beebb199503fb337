// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/membership_messages.h"

namespace cairn::cluster {

Bytes encode(const RenewRequest& request) {
  ByteWriter writer;
  writer.put(request.request);
  writer.put(request.nonce);
  writer.put(request.incarnation);
  writer.put(request.epoch);
  writer.put(request.heard);
  writer.put(request.ticket);
  return writer.take();
}

Bytes encode(const RenewAnswer& answer) {
  ByteWriter writer;
  writer.put(answer.request);
  writer.put(answer.nonce);
  writer.put(answer.verdict);
  writer.put(answer.settled);
  writer.put(answer.ticket);
  return writer.take();
}

Bytes encode(const ElsewhereAnswer& answer) {
  ByteWriter writer;
  writer.put(answer.request);
  writer.put(answer.leader);
  return writer.take();
}

std::optional<RenewRequest> decode_renew(std::span<const std::byte> header) {
  ByteReader reader(header);
  RenewRequest request;
  request.request = reader.take<std::uint64_t>();
  request.nonce = reader.take<std::uint64_t>();
  request.incarnation = reader.take<Incarnation>();
  request.epoch = reader.take<Epoch>();
  request.heard = reader.take<std::uint64_t>();
  request.ticket = reader.take<std::uint64_t>();
  if (!reader.is_at_end()) return std::nullopt;
  return request;
}

std::optional<RenewAnswer> decode_answer(std::span<const std::byte> header) {
  ByteReader reader(header);
  RenewAnswer answer;
  answer.request = reader.take<std::uint64_t>();
  answer.nonce = reader.take<std::uint64_t>();
  answer.verdict = reader.take<Verdict>();
  answer.settled = reader.take<Epoch>();
  answer.ticket = reader.take<std::uint64_t>();
  const bool is_known = answer.verdict >= Verdict::kGranted && answer.verdict <= Verdict::kTicket;
  if (!reader.is_at_end() || !is_known) return std::nullopt;
  return answer;
}

std::optional<ElsewhereAnswer> decode_elsewhere(std::span<const std::byte> header) {
  ByteReader reader(header);
  ElsewhereAnswer answer;
  answer.request = reader.take<std::uint64_t>();
  answer.leader = reader.take<NodeId>();
  if (!reader.is_at_end() || raw(answer.leader) > kNodesMax) return std::nullopt;
  return answer;
}

}  // namespace cairn::cluster
