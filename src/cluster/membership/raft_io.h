// SPDX-License-Identifier: Apache-2.0
// The I/O of libraft behind our interfaces: a Transport, a RaftStorage, the caller's clock and a
// seed. So the simulation drives the library itself, and a seed replays it.
//
// Nothing calls back from within a call of libraft: what a request asks for waits in a queue, in
// order, until progress() carries it out and calls the request's end. A host that dies before has
// not written it.
//
// Thread safety: none: the coordinator's thread. Ownership: borrows transport and storage, which
// outlive it; libraft owns its requests.
// Errors: a write that fails ends in RAFT_IOERR, after which libraft stops this coordinator.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "base/random_source.h"
#include "cluster/membership/libraft.h"
#include "cluster/membership/raft_storage.h"
#include "cluster/transport/transport.h"

namespace cairn::cluster {

inline constexpr MessageType kRaftMessage{0x0101};

class RaftIo {
 public:
  RaftIo(Transport& transport, RaftStorage& storage, std::uint64_t seed);
  ~RaftIo();
  RaftIo(const RaftIo&) = delete;
  RaftIo& operator=(const RaftIo&) = delete;

  raft_io* io() { return &io_; }
  void set_now(std::int64_t now_ns);
  void tick();
  // Drops what is damaged or not for Raft.
  void on_message(const Message& message);
  bool progress();

 private:
  struct Work {
    std::function<int()> act;         // null: nothing but the end
    std::function<void(int)> finish;  // the request's end, with an error of libraft or 0
  };

  static RaftIo& of(raft_io* io) { return *static_cast<RaftIo*>(io->impl); }
  void fill_table();
  static int load(raft_term* term, raft_id* vote, raft_snapshot** snapshot, raft_index* start_index,
                  const RaftMemory& memory);
  int bootstrap(const raft_configuration& configuration);
  int send(raft_io_send* request, const raft_message& message, raft_io_send_cb end);
  int append(raft_io_append* request, std::span<const raft_entry> entries, raft_io_append_cb end);
  int truncate(raft_index index);
  int put_snapshot(raft_io_snapshot_put* request, RaftSnapshot snapshot, unsigned trailing,
                   raft_io_snapshot_put_cb end);
  int get_snapshot(raft_io_snapshot_get* request, raft_io_snapshot_get_cb end);
  void close(raft_io_close_cb end);

  Transport& transport_;
  RaftStorage& storage_;
  RandomSource random_;
  raft_io io_{};
  raft_io_tick_cb on_tick_ = nullptr;
  raft_io_recv_cb on_receive_ = nullptr;
  std::int64_t now_ns_ = 0;
  bool is_closed_ = false;
  std::deque<Work> queue_;
};

}  // namespace cairn::cluster
