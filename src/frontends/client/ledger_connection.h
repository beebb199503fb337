// SPDX-License-Identifier: Apache-2.0
// A process's connection to the service's ledger of files that are used past the buffers
// (service/write_back/unserved_files.h): the process's messages about itself and such files, each
// with an answer when the service has done its part.
//
// It takes no slot and maps nothing, so it serves a process that cannot be attached. The kernel
// keeps it as it keeps the files: a forked child inherits it, and it is not closed on exec, so that
// the service sees it close when no process is left that may have the files open. A child that has
// something to say opens a connection of its own. A service that has no room for it closes it after
// the answer.
//
// A vfork child has one of its own, too, which its program gets. Up to kChildren such connections
// are known; a child beyond that makes one for each question.
//
// Thread safety: any thread; one question at a time. Ownership: one per process, never destroyed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "frontends/protocol/protocol.h"

namespace cairn {

class LedgerConnection {
 public:
  // Both return 0 (keep_through() of an open description: its O_APPEND) or -errno: the service's
  // own refusal, or why it could not be asked, which is -ETIMEDOUT when it does not answer within
  // kAnswerMs.
  static constexpr int kAnswerMs = 10'000;

  // This process works past the buffers from here on; everything dirty is stored when it returns.
  int tell_unserved(const char* socket_path, const protocol::UnservedMessage& message);
  // The file behind `fd` (any kind of descriptor, O_PATH too) is stored and in through mode, for as
  // long as this process, its children and what they start may have it open.
  int keep_through(const char* socket_path, const protocol::UnservedMessage& message, int fd);

  // This image has what it wants of what its process had before exec.
  void tell_inherited() const;

  // Whether `fd` is a ledger connection to the service at `socket_path`, of whichever process.
  static bool is_one(int fd, const char* socket_path);
  // One that came through exec: its files are kept in this image's own name by now.
  static void take_over(int fd);

  // Whether `fd` is the connection of the calling process, or of the vfork child that it is or that
  // has made it.
  bool owns(int fd, const char* socket_path) const;
  // The highest number that a connection has or had, -1 when there was none.
  int highest_descriptor() const;
  // Moves the connection of this process to another number, as `fd` is needed. False: it is not
  // the connection's, or there is no other.
  bool move_away_from(int fd);

 private:
  static constexpr unsigned kChildren = 64;

  struct Connection {
    int socket = -1;
    std::int32_t pid = 0;  // whose it is: a child that inherits it makes one of its own
  };
  // That of a vfork child. The place is free once the process `pid` has ended.
  struct ChildConnection {
    std::atomic<std::int32_t> pid{0};
    std::atomic<int> socket{-1};
  };

  int ask(const char* socket_path, const protocol::UnservedMessage& message, int fd);
  int ask_in_child(const char* socket_path, const protocol::UnservedMessage& message, int fd);
  ChildConnection* claim_for_child();

  Connection own_;
  std::array<ChildConnection, kChildren> of_children_{};
  std::atomic<bool> has_children_{false};
};

}  // namespace cairn
