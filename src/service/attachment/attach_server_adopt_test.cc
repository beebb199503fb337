// SPDX-License-Identifier: Apache-2.0
// What a successor makes of the connections, seats and processes that a dead service has left.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "memory/tiers/testing/test_memory.h"
#include "service/attachment/attach_server.h"
#include "service/attachment/testing/watched_writes.h"
#include "service/process/local_socket.h"

namespace cairn::node {
namespace {

class Told final : public AttachEvents {
 public:
  void on_departure(Owner dead, Departure how) override {
    const std::lock_guard lock(mutex_);
    departures_.push_back({dead, how});
    changed_.notify_all();
  }
  void on_inherited(Owner) override {}
  void on_descriptor(ObjectIndex) override {}
  void on_discarded(ObjectIndex) override {
    const std::lock_guard lock(mutex_);
    ++discarded_;
    changed_.notify_all();
  }
  void on_array_read(const message::ArrayRead&, Owner) override {}
  void on_packed_read(const message::PackedRead&, Owner) override {}
  void on_array_news(const message::ArrayNews&, std::uint32_t) override {}
  void on_question(Asker asker, const message::Flush&) override { asker.answer(0); }
  void on_question(Asker asker, const message::Sync&) override { hear(std::move(asker)); }
  void on_question(Asker asker, const message::MeetUnserved&) override { asker.answer(0); }
  void on_question(Asker asker, const message::MakeDurable&) override { asker.answer(0); }
  void on_question(Asker asker, const message::NoteCut&) override { asker.answer(0); }
  void on_question(Asker asker, const message::NoteRenamed&) override { asker.answer(0); }
  void on_question(Asker asker, message::MakeNamesDurable) override { asker.answer(0); }
  void on_unserved(Asker asker) override { hear(std::move(asker)); }
  void on_keep_through(Asker asker, LedgerId, UniqueFd, const protocol::UnservedMessage&) override {
    asker.answer(0);
  }
  void on_claims_settled() override {}
  void on_ledger_over() override {}
  void log(const std::string&) override {}

  std::atomic<bool> is_silent{false};
  bool await_question() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return questions_ != 0; });
  }
  bool await_discarded() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return discarded_ != 0; });
  }
  bool await_departure(Owner owner, Departure how) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      return std::any_of(departures_.begin(), departures_.end(), [&](const auto& each) {
        return each.first == owner && each.second == how;
      });
    });
  }

 private:
  void hear(Asker asker) {
    if (!is_silent) asker.answer(0);
    if (is_silent) new Asker(std::move(asker));  // its service dies first
    const std::lock_guard lock(mutex_);
    ++questions_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned questions_ = 0;
  unsigned discarded_ = 0;
  std::vector<std::pair<Owner, Departure>> departures_;
};

// The parts of one service that have to do with clients.
struct Parts {
  Parts(NodeMemory& memory, KeptMemory& kept, KeptDescriptors& labels)
      : budget(memory),
        clients(memory, budget, kept),
        files(memory),
        flusher(memory, files, clients.service(), FlushOptions(), nullptr),
        unserved(memory, flusher, clients.service(), kept),
        server(AttachServer::Parts{memory, clients, files, unserved, told, labels}) {
    budget.measure();
  }
  DescriptorBudget budget;
  ClientTable clients;
  StoreFiles files;
  Flusher flusher;
  UnservedFiles unserved;
  Told told;
  AttachServer server;
};

// The test's own process is the client, and the keeper; children of it are the services.
class AttachServerAdoptTest : public ::testing::Test {
 protected:
  static constexpr std::uint16_t kFirstSlot = ClientTable::kServiceSlot + 1;

  AttachServerAdoptTest() {
    std::string pattern = ::testing::TempDir() + "cairn-adopt-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    auto listener = listen_at(path(), SOCK_SEQPACKET, NamesSenders::kYes);
    EXPECT_TRUE(listener);
    if (listener) listener_ = std::move(listener.value());
    labels_.note(listener_.get(), {KeptKind::kClientListener});
  }
  ~AttachServerAdoptTest() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return directory_ + "/client.sock"; }
  Owner first_owner() const { return memory_.owners().current(kFirstSlot); }
  static ClientInfo client() {
    ClientInfo client;
    client.pid = ::getppid();  // asked by a service
    client.run = 3;
    client.command = "client";
    return client;
  }

  // A connection as the dead service has accepted it. Returns its number.
  int connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof address.sun_path - 1);
    client_ends_.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        ::connect(client_ends_.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address),
        0);
    service_ends_.emplace_back(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    EXPECT_TRUE(service_ends_.back());
    return service_ends_.back().get();
  }
  void label_client(int connection) {
    labels_.note(connection,
                 {KeptKind::kClient, first_owner().bits(), static_cast<std::uint64_t>(::getpid())});
  }
  template <typename Message>
  void say(const Message& message) const {
    ASSERT_EQ(::send(client_ends_.back().get(), &message, sizeof message, 0),
              static_cast<ssize_t>(sizeof message));
  }
  // What `body` returns in a process that ends without any other step. The parts of each service
  // take their kept memory anew.
  int in_service(const std::function<int(Parts&)>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body(*new Parts(memory_, kept_, labels_)));
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // The first client sits in the first slot, and the service dies.
  void seat_client() {
    ASSERT_EQ(in_service([](Parts& parts) {
                UnservedReason why{};
                const auto owner = parts.clients.attach(client(), &why);
                return owner ? owner->slot() : 0;
              }),
              kFirstSlot);
  }
  bool adopt(Parts& parts) {
    auto* left = new Inheritance(labels_);
    parts.clients.adopt();
    return static_cast<bool>(parts.server.adopt(path(), *left));
  }
  using UnservedReason = protocol::UnservedReason;

  std::string directory_;
  NodeMemory memory_ = testing::make_memory(testing::memory_only(4 << 20));
  KeptMemory kept_ = std::move(KeptMemory::create().value());
  KeptDescriptors labels_{kept_};
  UniqueFd listener_;
  std::vector<UniqueFd> client_ends_;
  std::vector<UniqueFd> service_ends_;
};

// A service that dies with a client half let in leaves the seat alone.
TEST_F(AttachServerAdoptTest, ASlotSaysWhatItsSeatSays) {
  seat_client();
  ClientSlot& slot = memory_.slot(kFirstSlot);
  slot.pid.store(0);
  slot.run.store(0);
  slot.state.store(SlotState::kFree);
  EXPECT_EQ(in_service([&](Parts& parts) { return adopt(parts) ? 0 : 1; }), 0);
  EXPECT_EQ(slot.pid.load(), ::getpid());
  EXPECT_EQ(slot.run.load(), 3u);
  EXPECT_EQ(slot.state.load(), SlotState::kActive);
  EXPECT_STREQ(slot.command, "client");
}

// The dead service had seen the end of the old image's connection, and not read the greeting of the
// new one.
TEST_F(AttachServerAdoptTest, AnImageWhoseSuccessorGreetsHasDepartedByExec) {
  const Owner old = first_owner();
  seat_client();
  connect();
  say(protocol::Hello());
  EXPECT_EQ(in_service([&](Parts& parts) {
              if (!adopt(parts)) return 1;
              return parts.told.await_departure(old, Departure::kExeced) ? 0 : 2;
            }),
            0);
}

TEST_F(AttachServerAdoptTest, SoHasOneThatHadTakenItsSlotItself) {
  const Owner old = first_owner();
  seat_client();
  SlotOffer& offer = memory_.slot(kFirstSlot).offer;
  offer.open(9);
  ASSERT_TRUE(offer.take(SlotClaim{kFirstSlot, 9, 77}));
  connect();
  say(protocol::Hello());
  EXPECT_EQ(in_service([&](Parts& parts) {
              if (!adopt(parts)) return 1;
              return parts.told.await_departure(old, Departure::kExeced) ? 0 : 2;
            }),
            0);
}

// The dead service had welcomed it, and not taken its greeting off. It has said all that it had to
// say since, and ended.
TEST_F(AttachServerAdoptTest, WhatAnEndedProcessHasSentBehindItsGreetingIsRead) {
  seat_client();
  label_client(connect());
  say(protocol::Hello());
  protocol::ObjectMessage last;
  last.header.type = protocol::Type::kDiscarded;
  last.object = 1;
  say(last);
  client_ends_.back().reset();
  EXPECT_EQ(in_service([&](Parts& parts) {
              if (!adopt(parts)) return 1;
              return parts.told.await_discarded() ? 0 : 2;
            }),
            0);
}

// Each of two services had welcomed it, and it had read the first welcome.
TEST_F(AttachServerAdoptTest, WhatItHasSentIsReadThoughItHasEndedWithAWelcomeUnread) {
  seat_client();
  label_client(connect());
  protocol::ObjectMessage last;
  last.header.type = protocol::Type::kDiscarded;
  last.object = 1;
  say(last);
  const protocol::Flushed unread;
  ASSERT_EQ(::send(service_ends_.back().get(), &unread, sizeof unread, 0),
            static_cast<ssize_t>(sizeof unread));
  client_ends_.back().reset();
  EXPECT_EQ(in_service([&](Parts& parts) {
              if (!adopt(parts)) return 1;
              return parts.told.await_discarded() ? 0 : 2;
            }),
            0);
}

// The dead service had read it, and not answered.
TEST_F(AttachServerAdoptTest, AQuestionIsAnsweredByTheNextService) {
  seat_client();
  connect();
  say(protocol::SyncMessage());
  EXPECT_EQ(in_service([&](Parts& parts) {
              parts.told.is_silent = true;
              return adopt(parts) && parts.told.await_question() ? 0 : 1;
            }),
            0);
  protocol::Flushed answer;
  const int client = client_ends_.back().get();
  EXPECT_LT(::recv(client, &answer, sizeof answer, MSG_DONTWAIT), 0);
  EXPECT_EQ(
      in_service([&](Parts& parts) { return adopt(parts) && parts.told.await_question() ? 0 : 1; }),
      0);
  service_ends_.clear();
  ASSERT_EQ(::recv(client, &answer, sizeof answer, 0), static_cast<ssize_t>(sizeof answer));
  EXPECT_EQ(answer.error, 0);
}

// A ledger's connection, whose question the dead service had taken off.
TEST_F(AttachServerAdoptTest, WhatALedgerWasAskedIsAskedAgain) {
  const int connection = connect();
  protocol::UnservedMessage message;
  message.header.type = protocol::Type::kUnserved;
  message.reason = UnservedReason::kNoMemory;
  say(message);
  EXPECT_EQ(in_service([&](Parts& parts) {
              parts.told.is_silent = true;
              return adopt(parts) && parts.told.await_question() ? 0 : 1;
            }),
            0);
  EXPECT_EQ(labels_.of(connection).kind, KeptKind::kLedger);
  protocol::Flushed answer;
  const int client = client_ends_.back().get();
  EXPECT_LT(::recv(client, &answer, sizeof answer, MSG_DONTWAIT), 0);
  EXPECT_EQ(in_service([&](Parts& parts) { return adopt(parts) ? 0 : 1; }), 0);
  ASSERT_EQ(::recv(client, &answer, sizeof answer, 0), static_cast<ssize_t>(sizeof answer));
  EXPECT_EQ(answer.error, EAGAIN);
  EXPECT_EQ(in_service([&](Parts& parts) { return adopt(parts) ? 0 : 1; }), 0);
  EXPECT_LT(::recv(client, &answer, sizeof answer, MSG_DONTWAIT), 0) << "once";
}

// Without its label a connection is taken for one that has not greeted, and what is in it refused.
TEST_F(AttachServerAdoptTest, ALabelStaysFromOneWriteToTheNext) {
  seat_client();
  const int connection = connect();
  label_client(connection);
  const int ledger = connect();
  labels_.note(ledger, {KeptKind::kLedger, 5, static_cast<std::uint64_t>(::getpid())});
  for (const int each : {connection, ledger, listener_.get()}) {
    const KeptLabel before = labels_.of(each);
    const auto is_the_same = [&] {
      const KeptLabel now = labels_.of(each);
      return now.kind == before.kind && now.number == before.number && now.first == before.first;
    };
    const auto writes = cairn::testing::watch_writes(
        labels_.word_of(each),
        [&](const std::function<void()>& mark) {
          Parts& parts = *new Parts(memory_, kept_, labels_);
          mark();
          if (!adopt(parts)) ::_exit(3);
          mark();
        },
        is_the_same);
    if (!writes.is_watched) GTEST_SKIP() << "nobody may watch a word here";
    EXPECT_TRUE(writes.is_whole) << "lost by write " << writes.count << " to label " << each;
    EXPECT_GE(writes.count, 1u) << "a successor notes what it adopts";
  }
}

}  // namespace
}  // namespace cairn::node
