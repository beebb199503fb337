// SPDX-License-Identifier: Apache-2.0
#include "cluster/ownership/file_user.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace cairn::cluster {

void FileUser::open(const LastingKey& file, std::int64_t now_ns, Done done) {
  begin({.action = Action::kOpen, .name = {file, {}}}, {}, now_ns, std::move(done));
}

void FileUser::close(const LastingKey& file, std::int64_t now_ns, Done done) {
  begin({.action = Action::kClose, .name = {file, {}}}, {}, now_ns, std::move(done));
}

void FileUser::read(const BlockName& name, std::int64_t now_ns, Done done) {
  if (has_delegation(name.file, now_ns)) {
    done(true, store_.read(name));
  } else if (has_copy(name, now_ns)) {
    done(true, copies_.at(name).bytes);
  } else {
    begin({.action = Action::kRead, .name = name}, {}, now_ns, std::move(done));
  }
}

void FileUser::write(const BlockName& name, Bytes bytes, std::int64_t now_ns, Done done) {
  // A copy of before must not be read when the delegation is over, nor may one arrive.
  copies_.erase(name);
  for (auto& [number, operation] : operations_) {
    if (operation.request.name == name) operation.may_keep = false;
  }
  if (has_delegation(name.file, now_ns)) {
    store_.write(name, bytes);
    done(true, {});
    return;
  }
  CAIRN_CHECK(!is_writing(name));
  begin({.action = Action::kWrite, .name = name}, std::move(bytes), now_ns, std::move(done));
}

void FileUser::begin(FileRequest request, Bytes bytes, std::int64_t now_ns, Done done) {
  request.number = next_number_++;
  Operation& operation = operations_[request.number];
  operation.request = request;
  operation.bytes = std::move(bytes);
  operation.done = std::move(done);
  operation.begun_ns = now_ns;
  send(operation, now_ns);
}

bool FileUser::send(Operation& operation, std::int64_t now_ns) {
  const LastingKey& file = operation.request.name.file;
  const NodeLife home = authority_.home_of(file);
  const NodeLife self = authority_.self();
  const bool is_first = operation.home.node == NodeId::kNone;
  if (!is_first && (operation.home != home || operation.self != self)) {
    if (operation.request.action == Action::kWrite) {
      end(operation.request.number, false, {});
      return true;
    }
    operation.home = {};
  }
  operation.next_send_ns = now_ns + terms_.again_ns;
  // Nobody answers for the file yet, or this node is no member.
  if (home.node == NodeId::kNone || self.incarnation == Incarnation::kNone) return false;
  if (operation.home.node == NodeId::kNone) {
    operation.home = home;
    operation.self = self;
    operation.first_sent_ns = now_ns;
    operation.may_keep = true;
  }
  ++requests_sent_;
  (void)transport_.send(home.node, kRequestMessage, encode(operation.request),
                        {operation.bytes, {}}, now_ns + terms_.operation_ns);
  return false;
}

void FileUser::on_message(const Message& message, std::int64_t now_ns) {
  if (message.type == kReplyMessage) {
    on_reply(message, now_ns);
    return;
  }
  const std::optional<Notice> notice = decode_notice(message.header);
  if (!notice) return;
  if (message.type == kRevokeMessage) on_revoke(message, *notice, now_ns);
  if (message.type == kRecallMessage) on_recall(message, *notice, now_ns);
}

void FileUser::on_reply(const Message& message, std::int64_t now_ns) {
  const std::optional<FileReply> reply = decode_reply(message.header);
  if (!reply) return;
  const auto found = operations_.find(reply->number);
  if (found == operations_.end() || found->second.home != message.from) return;
  Operation& operation = found->second;
  if (reply->outcome == Outcome::kElsewhere) {
    // One of the two does not know the other one's view; that ends soon.
    operation.next_send_ns = std::min(operation.next_send_ns, now_ns + terms_.again_ns / 5);
    return;
  }
  keep(operation, *reply, message);
  end(reply->number, true, Bytes(message.payload.begin(), message.payload.end()));
}

void FileUser::keep(const Operation& operation, const FileReply& reply, const Message& message) {
  const BlockName& name = operation.request.name;
  const Grant grant{message.from, operation.self};
  // A grant of another view may have ended with it.
  if (message.epoch != authority_.epoch() || !counts(grant, name.file)) return;
  if (reply.outcome == Outcome::kCopy && operation.may_keep) {
    copies_[name] = {grant, operation.first_sent_ns + terms_.copy_ns,
                     Bytes(message.payload.begin(), message.payload.end())};
  }
  if (reply.outcome != Outcome::kDelegated) return;
  const auto recalled = recalled_.find(name.file);
  const bool is_over = recalled != recalled_.end() && recalled->second.grant.home == message.from &&
                       recalled->second.number >= reply.delegation;
  if (!is_over) delegations_[name.file] = {grant, reply.delegation};
}

void FileUser::on_revoke(const Message& message, const Notice& notice, std::int64_t now_ns) {
  copies_.erase(notice.name);
  for (auto& [number, operation] : operations_) {
    if (operation.request.name == notice.name) operation.may_keep = false;
  }
  (void)transport_.send(message.from.node, kRevokedMessage, encode(notice), {},
                        now_ns + terms_.again_ns);
}

void FileUser::on_recall(const Message& message, const Notice& notice, std::int64_t now_ns) {
  const LastingKey& file = notice.name.file;
  const auto held = delegations_.find(file);
  if (held != delegations_.end() && held->second.number <= notice.number) delegations_.erase(held);
  // A grant of any other node counts for nothing, and needs no such note.
  if (message.from == authority_.home_of(file)) {
    Delegation& recalled = recalled_[file];
    const bool is_of_same_home = recalled.grant.home == message.from;
    recalled.number = is_of_same_home ? std::max(recalled.number, notice.number) : notice.number;
    recalled.grant.home = message.from;
  }
  (void)transport_.send(message.from.node, kReturnedMessage, encode(notice), {},
                        now_ns + terms_.again_ns);
}

bool FileUser::counts(const Grant& grant, const LastingKey& file) const {
  return grant.home == authority_.home_of(file) && grant.holder == authority_.self();
}

bool FileUser::is_writing(const BlockName& name) const {
  return std::ranges::any_of(operations_, [&](const auto& entry) {
    const FileRequest& request = entry.second.request;
    return request.action == Action::kWrite && request.name == name;
  });
}

bool FileUser::has_delegation(const LastingKey& file, std::int64_t now_ns) const {
  const auto found = delegations_.find(file);
  return found != delegations_.end() && counts(found->second.grant, file) &&
         authority_.may_serve(now_ns);
}

bool FileUser::has_copy(const BlockName& name, std::int64_t now_ns) const {
  const auto found = copies_.find(name);
  return found != copies_.end() && counts(found->second.grant, name.file) &&
         now_ns < found->second.until_ns && authority_.may_serve(now_ns);
}

void FileUser::tick(std::int64_t now_ns) {
  std::vector<std::uint64_t> due;
  for (const auto& [number, operation] : operations_) {
    if (now_ns >= operation.next_send_ns) due.push_back(number);
  }
  for (const std::uint64_t number : due) {
    const auto found = operations_.find(number);
    // The end of one operation may begin or end others.
    if (found == operations_.end()) continue;
    if (now_ns - found->second.begun_ns > terms_.operation_ns) {
      end(number, false, {});
    } else {
      send(found->second, now_ns);
    }
  }
}

void FileUser::on_view(std::int64_t now_ns) {
  std::erase_if(delegations_,
                [&](const auto& entry) { return !counts(entry.second.grant, entry.first); });
  std::erase_if(copies_,
                [&](const auto& entry) { return !counts(entry.second.grant, entry.first.file); });
  std::erase_if(recalled_, [&](const auto& entry) {
    return entry.second.grant.home != authority_.home_of(entry.first);
  });
  for (auto& [number, operation] : operations_) operation.next_send_ns = now_ns;
}

void FileUser::end(std::uint64_t number, bool is_carried_out, const Bytes& bytes) {
  const auto found = operations_.find(number);
  CAIRN_CHECK(found != operations_.end());
  const Done done = std::move(found->second.done);
  operations_.erase(found);
  if (done) done(is_carried_out, bytes);
}

}  // namespace cairn::cluster
