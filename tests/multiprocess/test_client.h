// SPDX-License-Identifier: Apache-2.0
// A process's attachment to a node, with nothing of the preload library: speaks the protocol
// itself.
//
// Thread safety: attach() first, in one thread; hand_over() from any thread; an OpenFile per
// thread.
// Ownership: maps the node's memory, owns the connection.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "frontends/client/dead_service.h"
#include "frontends/protocol/protocol.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/tiers/actor.h"

namespace cairn::testing {

// Runs `body` in a forked process. Returns its exit status, as a shell gives it.
int in_child(const std::function<int()>& body);

class TestClient final : public HandOver, public OwnerWatch {
 public:
  TestClient() = default;
  ~TestClient();
  // Its memory knows where it is.
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  // Returns false when refused; see refusal().
  bool attach(const std::string& socket_path, std::uint32_t run = 0);
  // Takes an offered slot without waiting for the service, up to and with a step.
  enum class ClaimStep : std::uint8_t { kConnected, kGreeted, kTaken };
  bool claim(const std::string& socket_path, ClaimStep last = ClaimStep::kTaken);
  // A claim to what `other` has claimed, up to its greeting.
  bool claim_as(const std::string& socket_path, const TestClient& other);
  // Waits for the service's answer.
  bool is_welcomed() const;
  // The rest of a claim after kGreeted: false when the slot is another's.
  bool take();
  bool attach_as(const std::string& socket_path, const protocol::Hello& hello);
  const std::string& refusal() const { return refusal_; }

  const NodeMemory& memory() const { return memory_; }
  Owner self() const { return self_; }
  Actor make_actor(unsigned shard) const;

  bool hand_over(ObjectIndex object, const Backing& backing) override;
  int request_flush(ObjectIndex object, bool durable) override;
  int meet_unserved(ObjectIndex object) override;
  void discarded(ObjectIndex object) override;
  bool is_gone(Owner owner) const override;
  void send_inherited();
  void send_declined();
  void send_foreign(const char* command);
  // What it asks from here on goes into the request ring or nowhere.
  void forget_socket() { socket_path_ = "/nowhere"; }
  // Whatever stands there, as one message.
  void send_bytes(const void* bytes, std::size_t length);

 private:
  int ask(protocol::Type type, ObjectIndex object, bool durable) const;
  int connect_to(const std::string& path) const;
  bool send(const void* message, std::size_t length, int fd);

  std::string socket_path_;
  std::string refusal_;
  int socket_ = -1;
  ServiceConnection connection_;
  Owner self_;
  NodeMemory memory_;
  SlotClaim claim_;
};

// One open file of one thread: an object with a description and a hold, like open(2) makes it.
class OpenFile {
 public:
  OpenFile(TestClient& client, Actor& actor, const std::string& path, int flags);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool is_open() const { return index_ != ObjectIndex::kNone; }
  ObjectAccess access() { return ObjectAccess{actor_, index_, *file_, client_}; }
  ssize_t read(std::uint64_t offset, void* buffer, std::size_t length);
  ssize_t write(std::uint64_t offset, const void* buffer, std::size_t length);
  int sync() { return sync_object(access(), true, nullptr); }
  ObjectIndex object() const { return index_; }
  HoldIndex hold() const { return hold_; }
  DescriptionIndex description() const { return description_; }

 private:
  TestClient& client_;
  Actor& actor_;
  int fd_ = -1;
  bool may_write_ = false;
  std::unique_ptr<PosixBacking> file_;
  ObjectIndex index_ = ObjectIndex::kNone;
  DescriptionIndex description_ = DescriptionIndex::kNone;
  HoldIndex hold_ = HoldIndex::kNone;
};

}  // namespace cairn::testing
