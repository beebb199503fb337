// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/raft_codec.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"

namespace cairn::cluster {

namespace {

std::span<const std::byte> bytes_of(const raft_buffer& buffer) {
  return {static_cast<const std::byte*>(buffer.base), buffer.len};
}

raft_buffer buffer_of(std::span<const std::byte> bytes) {
  raft_buffer buffer{raft_malloc(std::max<std::size_t>(1, bytes.size())), bytes.size()};
  CAIRN_CHECK(buffer.base != nullptr);
  if (!bytes.empty()) std::memcpy(buffer.base, bytes.data(), bytes.size());
  return buffer;
}

void encode_voters(ByteWriter& writer, const raft_configuration& configuration) {
  writer.put(static_cast<std::uint32_t>(configuration.n));
  for (const RaftVoter& voter : voters_of(configuration)) {
    writer.put(voter.id);
    writer.put(static_cast<std::uint8_t>(voter.role));
    writer.put_string(std::as_bytes(std::span(voter.address)));
  }
}

std::vector<RaftVoter> decode_voters(ByteReader& reader) {
  std::vector<RaftVoter> voters(reader.take_count(8 + 1 + 4));
  for (RaftVoter& voter : voters) {
    voter.id = reader.take<std::uint64_t>();
    voter.role = reader.take<std::uint8_t>();
    const std::span<const std::byte> address = reader.take_string();
    voter.address.assign(reinterpret_cast<const char*>(address.data()), address.size());
  }
  return voters;
}

void encode_append(ByteWriter& writer, const raft_append_entries& append) {
  writer.put(append.term);
  writer.put(append.prev_log_index);
  writer.put(append.prev_log_term);
  writer.put(append.leader_commit);
  writer.put(static_cast<std::uint32_t>(append.n_entries));
  for (const raft_entry& entry : std::span(append.entries, append.n_entries)) {
    writer.put(entry.term);
    writer.put(entry.type);
    writer.put_string(bytes_of(entry.buf));
  }
}

void encode_install(ByteWriter& writer, const raft_install_snapshot& install) {
  writer.put(install.term);
  writer.put(install.last_index);
  writer.put(install.last_term);
  writer.put(install.conf_index);
  encode_voters(writer, install.conf);
  writer.put_string(bytes_of(install.data));
}

Status bad_message() { return {StatusCode::kInvalid, "a message of Raft that is damaged"}; }

}  // namespace

Bytes encode_raft_message(const raft_message& message) {
  ByteWriter writer;
  writer.put(message.type);
  switch (message.type) {
    case RAFT_IO_APPEND_ENTRIES:
      encode_append(writer, message.append_entries);
      break;
    case RAFT_IO_APPEND_ENTRIES_RESULT:
      writer.put(message.append_entries_result.term);
      writer.put(message.append_entries_result.rejected);
      writer.put(message.append_entries_result.last_log_index);
      break;
    case RAFT_IO_REQUEST_VOTE:
      writer.put(message.request_vote.term);
      writer.put(message.request_vote.candidate_id);
      writer.put(message.request_vote.last_log_index);
      writer.put(message.request_vote.last_log_term);
      writer.put(message.request_vote.disrupt_leader);
      writer.put(message.request_vote.pre_vote);
      break;
    case RAFT_IO_REQUEST_VOTE_RESULT:
      writer.put(message.request_vote_result.term);
      writer.put(message.request_vote_result.vote_granted);
      writer.put(static_cast<std::uint8_t>(message.request_vote_result.pre_vote));
      break;
    case RAFT_IO_INSTALL_SNAPSHOT:
      encode_install(writer, message.install_snapshot);
      break;
    default:
      CAIRN_CHECK(message.type == RAFT_IO_TIMEOUT_NOW);
      writer.put(message.timeout_now.term);
      writer.put(message.timeout_now.last_log_index);
      writer.put(message.timeout_now.last_log_term);
  }
  return writer.take();
}

OwnedRaftMessage::~OwnedRaftMessage() {
  if (!owns_) return;
  if (message_.type == RAFT_IO_APPEND_ENTRIES && message_.append_entries.n_entries > 0) {
    raft_free(message_.append_entries.entries[0].batch);
    raft_free(message_.append_entries.entries);
  }
  if (message_.type == RAFT_IO_INSTALL_SNAPSHOT) {
    raft_configuration_close(&message_.install_snapshot.conf);
    raft_free(message_.install_snapshot.data.base);
  }
}

raft_message* OwnedRaftMessage::release() {
  CAIRN_CHECK(message_.type != 0);
  owns_ = false;
  return &message_;
}

Status OwnedRaftMessage::decode_entries(ByteReader& reader) {
  raft_append_entries& append = message_.append_entries;
  append.term = reader.take<raft_term>();
  append.prev_log_index = reader.take<raft_index>();
  append.prev_log_term = reader.take<raft_term>();
  append.leader_commit = reader.take<raft_index>();
  std::vector<RaftEntry> entries(reader.take_count(8 + 2 + 4));
  std::vector<const RaftEntry*> pointers;
  for (RaftEntry& entry : entries) {
    entry.term = reader.take<std::uint64_t>();
    entry.kind = reader.take<std::uint16_t>();
    const std::span<const std::byte> bytes = reader.take_string();
    entry.bytes.assign(bytes.begin(), bytes.end());
    pointers.push_back(&entry);
    if (entry.kind < RAFT_COMMAND || entry.kind > RAFT_CHANGE) return bad_message();
  }
  if (!reader.is_at_end()) return bad_message();
  const RaftEntryArray array = make_raft_entries(pointers);
  append.entries = array.entries;
  append.n_entries = static_cast<unsigned>(array.count);
  owns_ = true;
  return Status::ok();
}

Status OwnedRaftMessage::decode_snapshot(ByteReader& reader) {
  raft_install_snapshot& install = message_.install_snapshot;
  install.term = reader.take<raft_term>();
  install.last_index = reader.take<raft_index>();
  install.last_term = reader.take<raft_term>();
  install.conf_index = reader.take<raft_index>();
  const std::vector<RaftVoter> voters = decode_voters(reader);
  const std::span<const std::byte> bytes = reader.take_string();
  if (!reader.is_at_end()) return bad_message();
  raft_configuration_init(&install.conf);
  install.data = buffer_of(bytes);
  owns_ = true;
  return add_voters(install.conf, voters);
}

Status OwnedRaftMessage::decode(std::span<const std::byte> bytes) {
  CAIRN_CHECK(message_.type == 0);
  ByteReader reader(bytes);
  message_.type = reader.take<unsigned short>();
  if (message_.type == RAFT_IO_APPEND_ENTRIES) return decode_entries(reader);
  if (message_.type == RAFT_IO_INSTALL_SNAPSHOT) return decode_snapshot(reader);
  if (message_.type == RAFT_IO_APPEND_ENTRIES_RESULT) {
    message_.append_entries_result.term = reader.take<raft_term>();
    message_.append_entries_result.rejected = reader.take<raft_index>();
    message_.append_entries_result.last_log_index = reader.take<raft_index>();
  } else if (message_.type == RAFT_IO_REQUEST_VOTE) {
    message_.request_vote.term = reader.take<raft_term>();
    message_.request_vote.candidate_id = reader.take<raft_id>();
    message_.request_vote.last_log_index = reader.take<raft_index>();
    message_.request_vote.last_log_term = reader.take<raft_term>();
    message_.request_vote.disrupt_leader = reader.take<std::uint8_t>() != 0;
    message_.request_vote.pre_vote = reader.take<std::uint8_t>() != 0;
  } else if (message_.type == RAFT_IO_REQUEST_VOTE_RESULT) {
    message_.request_vote_result.term = reader.take<raft_term>();
    message_.request_vote_result.vote_granted = reader.take<std::uint8_t>() != 0;
    const auto pre_vote = reader.take<std::uint8_t>();
    if (pre_vote > raft_tribool_false) return bad_message();
    message_.request_vote_result.pre_vote = static_cast<raft_tribool>(pre_vote);
  } else if (message_.type == RAFT_IO_TIMEOUT_NOW) {
    message_.timeout_now.term = reader.take<raft_term>();
    message_.timeout_now.last_log_index = reader.take<raft_index>();
    message_.timeout_now.last_log_term = reader.take<raft_term>();
  } else {
    return bad_message();
  }
  return reader.is_at_end() ? Status::ok() : bad_message();
}

RaftEntryArray make_raft_entries(std::span<const RaftEntry* const> entries) {
  if (entries.empty()) return {};
  std::size_t total = 0;
  for (const RaftEntry* entry : entries) total += entry->bytes.size();
  auto* batch = static_cast<std::byte*>(raft_malloc(std::max<std::size_t>(1, total)));
  auto* array = static_cast<raft_entry*>(raft_calloc(entries.size(), sizeof(raft_entry)));
  CAIRN_CHECK(batch != nullptr && array != nullptr);
  std::size_t used = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const RaftEntry& from = *entries[i];
    array[i] = {from.term, from.kind, {batch + used, from.bytes.size()}, batch};
    if (!from.bytes.empty()) std::memcpy(batch + used, from.bytes.data(), from.bytes.size());
    used += from.bytes.size();
  }
  CAIRN_CHECK(used == total);
  return {array, entries.size()};
}

RaftEntry copy_of(const raft_entry& entry) {
  const std::span<const std::byte> bytes = bytes_of(entry.buf);
  return {entry.term, entry.type, Bytes(bytes.begin(), bytes.end())};
}

raft_snapshot* make_raft_snapshot(const RaftSnapshot& snapshot) {
  auto* made = static_cast<raft_snapshot*>(raft_calloc(1, sizeof(raft_snapshot)));
  if (made == nullptr) return nullptr;
  made->index = snapshot.index;
  made->term = snapshot.term;
  made->configuration_index = snapshot.voters_index;
  raft_configuration_init(&made->configuration);
  CAIRN_CHECK(add_voters(made->configuration, snapshot.voters).is_ok());
  made->bufs = static_cast<raft_buffer*>(raft_malloc(sizeof(raft_buffer)));
  CAIRN_CHECK(made->bufs != nullptr);
  made->bufs[0] = buffer_of(snapshot.bytes);
  made->n_bufs = 1;
  return made;
}

RaftSnapshot copy_of(const raft_snapshot& snapshot) {
  RaftSnapshot copy{snapshot.index,
                    snapshot.term,
                    snapshot.configuration_index,
                    voters_of(snapshot.configuration),
                    {}};
  for (const raft_buffer& buffer : std::span(snapshot.bufs, snapshot.n_bufs)) {
    const std::span<const std::byte> bytes = bytes_of(buffer);
    copy.bytes.insert(copy.bytes.end(), bytes.begin(), bytes.end());
  }
  return copy;
}

std::vector<RaftVoter> voters_of(const raft_configuration& configuration) {
  std::vector<RaftVoter> voters;
  for (const raft_server& server : std::span(configuration.servers, configuration.n)) {
    voters.push_back({server.id, server.role, server.address});
  }
  return voters;
}

Status add_voters(raft_configuration& configuration, std::span<const RaftVoter> voters) {
  for (const RaftVoter& voter : voters) {
    const int error =
        raft_configuration_add(&configuration, voter.id, voter.address.c_str(), voter.role);
    if (error != 0) return {StatusCode::kInvalid, raft_strerror(error)};
  }
  return Status::ok();
}

}  // namespace cairn::cluster
