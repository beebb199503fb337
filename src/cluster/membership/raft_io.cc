// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/raft_io.h"

#include <cstdio>
#include <utility>

#include "base/check.h"
#include "cluster/membership/raft_codec.h"

namespace cairn::cluster {

namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
// Raft sends again what gets no answer; an older message is no use to anybody.
constexpr std::int64_t kRaftDeadlineNs = 1'000 * kNsPerMs;

int raft_error(const Status& status) { return status.is_ok() ? 0 : RAFT_IOERR; }

}  // namespace

RaftIo::RaftIo(Transport& transport, RaftStorage& storage, std::uint64_t seed)
    : transport_(transport), storage_(storage), random_(seed) {
  fill_table();
}

RaftIo::~RaftIo() { CAIRN_CHECK(queue_.empty()); }

void RaftIo::fill_table() {
  io_.version = 1;
  io_.impl = this;
  io_.init = [](raft_io*, raft_id, const char*) { return 0; };
  io_.close = [](raft_io* io, raft_io_close_cb end) { of(io).close(end); };
  io_.load = [](raft_io* io, raft_term* term, raft_id* vote, raft_snapshot** snapshot,
                raft_index* start_index, raft_entry** entries, std::size_t* count) {
    const RaftMemory& memory = of(io).storage_.memory();
    std::vector<const RaftEntry*> pointers;
    for (const RaftEntry& entry : memory.entries) pointers.push_back(&entry);
    const RaftEntryArray array = make_raft_entries(pointers);
    *entries = array.entries;
    *count = array.count;
    return load(term, vote, snapshot, start_index, memory);
  };
  io_.start = [](raft_io* io, unsigned, raft_io_tick_cb on_tick, raft_io_recv_cb on_receive) {
    of(io).on_tick_ = on_tick;
    of(io).on_receive_ = on_receive;
    return 0;
  };
  io_.bootstrap = [](raft_io* io, const raft_configuration* conf) {
    return of(io).bootstrap(*conf);
  };
  io_.recover = [](raft_io*, const raft_configuration*) { return RAFT_INVALID; };
  io_.set_term = [](raft_io* io, raft_term term) {
    return raft_error(of(io).storage_.set_term(term));
  };
  io_.set_vote = [](raft_io* io, raft_id vote) {
    return raft_error(of(io).storage_.set_vote(vote));
  };
  io_.send = [](raft_io* io, raft_io_send* request, const raft_message* message,
                raft_io_send_cb end) { return of(io).send(request, *message, end); };
  io_.append = [](raft_io* io, raft_io_append* request, const raft_entry* entries, unsigned count,
                  raft_io_append_cb end) { return of(io).append(request, {entries, count}, end); };
  io_.truncate = [](raft_io* io, raft_index index) { return of(io).truncate(index); };
  io_.snapshot_put = [](raft_io* io, unsigned trailing, raft_io_snapshot_put* request,
                        const raft_snapshot* snapshot, raft_io_snapshot_put_cb end) {
    return of(io).put_snapshot(request, copy_of(*snapshot), trailing, end);
  };
  io_.snapshot_get = [](raft_io* io, raft_io_snapshot_get* request, raft_io_snapshot_get_cb end) {
    return of(io).get_snapshot(request, end);
  };
  io_.time = [](raft_io* io) { return static_cast<raft_time>(of(io).now_ns_ / kNsPerMs); };
  io_.random = [](raft_io* io, int min, int max) {
    CAIRN_CHECK(max > min);
    return min + static_cast<int>(of(io).random_.below(static_cast<std::uint32_t>(max - min)));
  };
}

void RaftIo::set_now(std::int64_t now_ns) {
  CAIRN_CHECK(now_ns >= now_ns_);
  now_ns_ = now_ns;
}

void RaftIo::tick() {
  if (!is_closed_ && on_tick_ != nullptr) on_tick_(&io_);
}

void RaftIo::on_message(const Message& message) {
  if (is_closed_ || on_receive_ == nullptr || message.type != kRaftMessage) return;
  OwnedRaftMessage received;
  if (!received.decode(message.payload).is_ok()) return;
  const std::string address = std::to_string(raw(message.from.node));
  raft_message* const taken = received.release();
  taken->server_id = raw(message.from.node);
  taken->server_address = address.c_str();
  on_receive_(&io_, taken);
}

bool RaftIo::progress() {
  bool has_done_any = false;
  while (!queue_.empty()) {
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    const int error = work.act ? work.act() : 0;
    work.finish(error);
    has_done_any = true;
  }
  return has_done_any;
}

int RaftIo::load(raft_term* term, raft_id* vote, raft_snapshot** snapshot, raft_index* start_index,
                 const RaftMemory& memory) {
  *term = memory.term;
  *vote = memory.vote;
  *start_index = memory.first_index;
  *snapshot = nullptr;
  if (!memory.snapshot) return 0;
  CAIRN_CHECK(memory.first_index <= memory.snapshot->index + 1);
  *snapshot = make_raft_snapshot(*memory.snapshot);
  return *snapshot == nullptr ? RAFT_NOMEM : 0;
}

int RaftIo::bootstrap(const raft_configuration& configuration) {
  const RaftMemory& memory = storage_.memory();
  if (memory.term != 0 || memory.snapshot || !memory.entries.empty()) return RAFT_CANTBOOTSTRAP;
  raft_buffer encoded{};
  if (const int error = raft_configuration_encode(&configuration, &encoded); error != 0) {
    return error;
  }
  std::vector<RaftEntry> first;
  first.push_back(copy_of({.term = 1, .type = RAFT_CHANGE, .buf = encoded, .batch = nullptr}));
  raft_free(encoded.base);
  if (const int error = raft_error(storage_.set_term(1)); error != 0) return error;
  return raft_error(storage_.append(std::move(first)));
}

int RaftIo::send(raft_io_send* request, const raft_message& message, raft_io_send_cb end) {
  CAIRN_CHECK(message.server_id > 0 && message.server_id <= kNodesMax);
  const Bytes bytes = encode_raft_message(message);
  const Status sent = transport_.send(NodeId{static_cast<std::uint32_t>(message.server_id)},
                                      kRaftMessage, {}, {bytes, {}}, now_ns_ + kRaftDeadlineNs);
  const int error = sent.is_ok() ? 0 : RAFT_NOCONNECTION;
  queue_.push_back(
      {[error] { return error; }, [request, end](int status) { end(request, status); }});
  return 0;
}

int RaftIo::append(raft_io_append* request, std::span<const raft_entry> entries,
                   raft_io_append_cb end) {
  auto copies = std::make_shared<std::vector<RaftEntry>>();
  for (const raft_entry& entry : entries) copies->push_back(copy_of(entry));
  queue_.push_back({[this, copies] { return raft_error(storage_.append(std::move(*copies))); },
                    [request, end](int status) { end(request, status); }});
  return 0;
}

int RaftIo::truncate(raft_index index) {
  // In its turn: appends that were asked for before it may be what it takes back.
  queue_.push_back({[this, index] { return raft_error(storage_.truncate(index)); },
                    [](int status) { CAIRN_CHECK(status == 0 || status == RAFT_CANCELED); }});
  return 0;
}

int RaftIo::put_snapshot(raft_io_snapshot_put* request, RaftSnapshot snapshot, unsigned trailing,
                         raft_io_snapshot_put_cb end) {
  auto copy = std::make_shared<RaftSnapshot>(std::move(snapshot));
  queue_.push_back({[this, copy, trailing] {
                      return raft_error(storage_.put_snapshot(std::move(*copy), trailing));
                    },
                    [request, end](int status) { end(request, status); }});
  return 0;
}

int RaftIo::get_snapshot(raft_io_snapshot_get* request, raft_io_snapshot_get_cb end) {
  queue_.push_back({{}, [this, request, end](int status) {
                      raft_snapshot* snapshot = nullptr;
                      if (status == 0 && storage_.memory().snapshot) {
                        snapshot = make_raft_snapshot(*storage_.memory().snapshot);
                      }
                      if (status == 0 && snapshot == nullptr) status = RAFT_NOTFOUND;
                      end(request, snapshot, status);
                    }});
  return 0;
}

void RaftIo::close(raft_io_close_cb end) {
  is_closed_ = true;
  // libraft frees each request at its end, and asks for nothing more.
  while (!queue_.empty()) {
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    work.finish(RAFT_CANCELED);
  }
  end(&io_);
}

}  // namespace cairn::cluster
