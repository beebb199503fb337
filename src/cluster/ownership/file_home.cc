// SPDX-License-Identifier: Apache-2.0
#include "cluster/ownership/file_home.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::cluster {

void FileHome::on_message(const Message& message, std::int64_t now_ns) {
  if (message.type == kRequestMessage) {
    const std::optional<FileRequest> request = decode_request(message.header);
    if (request) on_request(message, *request, now_ns);
  }
  if (message.type == kRevokedMessage) on_revoked(message, now_ns);
  if (message.type == kReturnedMessage) on_returned(message, now_ns);
}

void FileHome::on_request(const Message& message, const FileRequest& request, std::int64_t now_ns) {
  const LastingKey& key = request.name.file;
  Waiting asked{message.from, request, Bytes(message.payload.begin(), message.payload.end())};
  const bool is_of_this_view = message.epoch == authority_.epoch() && authority_.has(message.from);
  if (!is_of_this_view || !authority_.serves(key, now_ns)) {
    reply(asked, Outcome::kElsewhere, {}, now_ns);
    return;
  }
  File& file = files_[key];
  const auto last = file.carried_out.find({message.from, request.name.block});
  if (request.action == Action::kWrite && last != file.carried_out.end() &&
      request.number <= last->second) {
    if (request.number == last->second) reply(asked, Outcome::kDone, {}, now_ns);
    return;
  }
  if (is_known(file, asked)) return;
  if (file.state == FileState::kAtHome) {
    carry_out(file, std::move(asked), now_ns);
  } else {
    file.waiting.push_back(std::move(asked));
    if (file.state == FileState::kDelegated) recall(file, key, now_ns);
  }
  if (advance(key, file, now_ns)) busy_.insert(key);
}

// Whether the same request is waiting already.
bool FileHome::is_known(const File& file, const Waiting& asked) const {
  const auto is_same = [&asked](const Waiting& other) {
    return other.from == asked.from && other.request.number == asked.request.number;
  };
  if (std::ranges::any_of(file.waiting, is_same)) return true;
  const auto block = file.blocks.find(asked.request.name.block);
  return block != file.blocks.end() && std::ranges::any_of(block->second.writes, is_same);
}

void FileHome::carry_out(File& file, Waiting asked, std::int64_t now_ns) {
  CAIRN_CHECK(file.state == FileState::kAtHome);
  switch (asked.request.action) {
    case Action::kOpen:
      open(file, asked, now_ns);
      return;
    case Action::kClose:
      file.users.erase(asked.from);
      reply(asked, Outcome::kDone, {}, now_ns);
      return;
    case Action::kRead:
      read(file, asked, now_ns);
      return;
    case Action::kWrite:
      break;
  }
  Block& block = file.blocks[asked.request.name.block];
  if (block.writes.empty()) {
    block.revocation = next_number_++;
    block.revoke_again_ns = now_ns;
  }
  block.writes.push_back(std::move(asked));
}

void FileHome::open(File& file, const Waiting& asked, std::int64_t now_ns) {
  file.users.insert(asked.from);
  const bool is_alone = file.users.size() == 1;
  const bool is_shared = std::ranges::any_of(file.blocks, [&](const auto& entry) {
    const Block& block = entry.second;
    return !block.writes.empty() || std::ranges::any_of(block.holders, [&](const Holder& holder) {
      return holder.life != asked.from;
    });
  });
  // Those that wait behind this one have it open, or will.
  if (!is_alone || is_shared || !file.waiting.empty()) {
    reply(asked, Outcome::kDone, {}, now_ns);
    return;
  }
  file.state = FileState::kDelegated;
  file.delegate = asked.from;
  file.delegation = next_number_++;
  // It stays a holder of its copies: it may still have them when the file has come home.
  reply(asked, Outcome::kDelegated, {}, now_ns);
}

void FileHome::read(File& file, const Waiting& asked, std::int64_t now_ns) {
  const Bytes bytes = store_.read(asked.request.name);
  Block& block = file.blocks[asked.request.name.block];
  if (!block.writes.empty()) {
    reply(asked, Outcome::kDone, bytes, now_ns);
    return;
  }
  const auto holder = std::ranges::find(block.holders, asked.from, &Holder::life);
  const std::int64_t until_ns = now_ns + 2 * terms_.copy_ns;
  if (holder == block.holders.end()) {
    block.holders.push_back({asked.from, until_ns});
  } else {
    holder->until_ns = until_ns;
  }
  reply(asked, Outcome::kCopy, bytes, now_ns);
}

void FileHome::on_revoked(const Message& message, std::int64_t now_ns) {
  const std::optional<Notice> notice = decode_notice(message.header);
  if (!notice) return;
  const auto file = files_.find(notice->name.file);
  if (file == files_.end()) return;
  const auto block = file->second.blocks.find(notice->name.block);
  // An answer to an earlier revocation says nothing of a copy that was granted since.
  if (block == file->second.blocks.end() || block->second.revocation != notice->number) return;
  if (block->second.writes.empty()) return;
  std::erase_if(block->second.holders,
                [&](const Holder& holder) { return holder.life == message.from; });
  advance(file->first, file->second, now_ns);
}

void FileHome::on_returned(const Message& message, std::int64_t now_ns) {
  const std::optional<Notice> notice = decode_notice(message.header);
  if (!notice) return;
  const auto file = files_.find(notice->name.file);
  if (file == files_.end() || file->second.state != FileState::kRecalling) return;
  if (file->second.delegate != message.from || file->second.delegation != notice->number) return;
  file->second.delegate = {};
  if (advance(file->first, file->second, now_ns)) busy_.insert(file->first);
}

void FileHome::recall(File& file, const LastingKey& key, std::int64_t now_ns) {
  CAIRN_CHECK(file.state != FileState::kAtHome);
  file.state = FileState::kRecalling;
  file.recall_again_ns = now_ns + terms_.again_ns;
  (void)transport_.send(file.delegate.node, kRecallMessage,
                        encode(Notice{{key, {}}, file.delegation}), {}, now_ns + terms_.again_ns);
}

void FileHome::come_home(File& file, std::int64_t now_ns) {
  file.state = FileState::kAtHome;
  file.delegate = {};
  std::deque<Waiting> waiting = std::exchange(file.waiting, {});
  while (!waiting.empty()) {
    Waiting asked = std::move(waiting.front());
    waiting.pop_front();
    // An open of those may take the file away again; not while others wait.
    file.waiting.swap(waiting);
    carry_out(file, std::move(asked), now_ns);
    file.waiting.swap(waiting);
  }
}

bool FileHome::advance(const LastingKey& key, File& file, std::int64_t now_ns) {
  std::erase_if(file.users, [&](NodeLife life) { return !authority_.has(life); });
  const bool has_delegate = authority_.has(file.delegate);
  if (file.state != FileState::kAtHome && !has_delegate && authority_.serves(key, now_ns)) {
    come_home(file, now_ns);
  }
  if (file.state == FileState::kRecalling && has_delegate && now_ns >= file.recall_again_ns) {
    recall(file, key, now_ns);
  }
  bool is_busy =
      file.state == FileState::kRecalling || (file.state == FileState::kDelegated && !has_delegate);
  for (auto& [number, block] : file.blocks) {
    carry_out_writes(file, block, now_ns);
    is_busy |= !block.writes.empty();
  }
  return is_busy;
}

void FileHome::carry_out_writes(File& file, Block& block, std::int64_t now_ns) {
  if (block.writes.empty()) return;
  CAIRN_CHECK(file.state == FileState::kAtHome);
  std::erase_if(block.holders, [&](const Holder& holder) {
    return now_ns > holder.until_ns || !authority_.has(holder.life);
  });
  const BlockName name = block.writes.front().request.name;
  if (!block.holders.empty()) {
    if (now_ns < block.revoke_again_ns) return;
    block.revoke_again_ns = now_ns + terms_.again_ns;
    for (const Holder& holder : block.holders) {
      (void)transport_.send(holder.life.node, kRevokeMessage,
                            encode(Notice{name, block.revocation}), {}, now_ns + terms_.again_ns);
    }
    return;
  }
  // A lease that has run out may be renewed: the writes wait for that.
  if (!authority_.serves(name.file, now_ns)) return;
  while (!block.writes.empty()) {
    const Waiting write = std::move(block.writes.front());
    block.writes.pop_front();
    // Its user may be gone. It has had no answer, so that this one is as good as none.
    if (!authority_.has(write.from)) continue;
    store_.write(write.request.name, write.bytes);
    std::uint64_t& last = file.carried_out[{write.from, write.request.name.block}];
    CAIRN_CHECK(last < write.request.number);
    last = write.request.number;
    reply(write, Outcome::kDone, {}, now_ns);
  }
}

void FileHome::tick(std::int64_t now_ns) {
  for (auto key = busy_.begin(); key != busy_.end();) {
    const auto file = files_.find(*key);
    const bool is_busy = file != files_.end() && advance(*key, file->second, now_ns);
    key = is_busy ? std::next(key) : busy_.erase(key);
  }
}

void FileHome::on_view(std::int64_t now_ns) {
  // Rights that another life of this node has granted are over, too.
  if (self_ != authority_.self()) files_.clear();
  self_ = authority_.self();
  std::erase_if(files_, [&](const auto& entry) {
    return authority_.home_of(entry.first) != authority_.self();
  });
  for (auto& [key, file] : files_) {
    std::erase_if(file.carried_out,
                  [&](const auto& entry) { return !authority_.has(entry.first.first); });
    if (advance(key, file, now_ns)) busy_.insert(key);
  }
}

FileState FileHome::state_of(const LastingKey& file) const {
  const auto found = files_.find(file);
  return found == files_.end() ? FileState::kAtHome : found->second.state;
}

void FileHome::reply(const Waiting& asked, Outcome outcome, const Bytes& bytes,
                     std::int64_t now_ns) {
  FileReply reply{asked.request.number, outcome, 0};
  if (outcome == Outcome::kDelegated) {
    reply.delegation = files_.at(asked.request.name.file).delegation;
  }
  (void)transport_.send(asked.from.node, kReplyMessage, encode(reply), {bytes, {}},
                        now_ns + terms_.operation_ns);
}

}  // namespace cairn::cluster
