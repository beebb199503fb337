// SPDX-License-Identifier: Apache-2.0
// Files that processes use past the buffers: stored, in through mode while anybody may have them
// open, and one truth whatever happens to who asked for it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "frontends/client/ledger_connection.h"
#include "frontends/client/session.h"
#include "memory/buffer/kernel_use.h"
#include "multiprocess/node_process.h"
#include "multiprocess/test_client.h"

namespace cairn::testing {
namespace {

using protocol::UnservedReason;

protocol::UnservedMessage message_of(protocol::Type type) {
  protocol::UnservedMessage message;
  message.header.type = type;
  message.run = 7;
  message.reason = UnservedReason::kNoSlot;
  std::snprintf(message.command, sizeof message.command, "unserved");
  return message;
}

// A process without a slot that works past the buffers.
class Unserved {
 public:
  explicit Unserved(const NodeProcess& node) : socket_(node.client_socket()) {}
  int keep(const std::string& path, int flags = O_RDONLY) {
    const int fd = ::open(path.c_str(), flags | O_CREAT, 0600);
    const auto message = message_of(protocol::Type::kKeepThrough);
    const int result = ledger_.keep_through(socket_.c_str(), message, fd);
    ::close(fd);
    return result;
  }
  int tell() {
    return ledger_.tell_unserved(socket_.c_str(), message_of(protocol::Type::kUnserved));
  }
  int descriptor() const { return ledger_.highest_descriptor(); }

 private:
  const std::string socket_;
  LedgerConnection ledger_;
};

// A child that runs `body` and stays until it is killed.
class Staying {
 public:
  explicit Staying(const std::function<int()>& body) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::alarm(60);
      const int result = body();
      (void)!::write(ready[1], &result, sizeof result);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    EXPECT_EQ(::read(ready[0], &result_, sizeof result_), static_cast<ssize_t>(sizeof result_));
    ::close(ready[0]);
  }
  ~Staying() { kill(); }
  Staying(const Staying&) = delete;
  Staying& operator=(const Staying&) = delete;
  int result() const { return result_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
  int result_ = -1;
};

bool soon(const std::function<bool()>& holds) {
  for (int attempt = 0; attempt < 5000; ++attempt) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

std::string stored(const std::string& path) {
  char bytes[64] = {};
  const int fd = ::open(path.c_str(), O_RDONLY);
  const ssize_t got = ::read(fd, bytes, sizeof bytes);
  ::close(fd);
  return std::string(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
}

// How many keep the file in through mode. The mode itself lasts until the file is worked on.
std::uint32_t users_of(const TestClient& client, const OpenFile& file) {
  return client.memory().objects().at(file.object()).through.load() & ~kThroughAbandoned;
}

class UnservedTest : public ::testing::Test {
 protected:
  UnservedTest() : node_(options()) {}
  static NodeOptions options() {
    NodeOptions options;
    options.flush_delay_ms = 600'000;  // nothing is stored of its own accord
    return options;
  }
  void SetUp() override {
    ASSERT_EQ(node_.ready_line(), "ready\n") << node_.log();
    ASSERT_TRUE(client_.attach(node_.client_socket()));
    actor_ = client_.make_actor(0);
  }
  std::uint32_t through(const OpenFile& file) const { return users_of(client_, file); }
  std::string path(const char* name) const { return node_.data_directory() + "/" + name; }

  NodeProcess node_;
  TestClient client_;
  Actor actor_;
};

TEST_F(UnservedTest, AFileIsStoredAndThroughAsLongAsItsUserLives) {
  OpenFile file(client_, actor_, path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(file.write(0, "dirty", 5), 5);
  ASSERT_NE(stored(path("f")), "dirty");
  Staying user([&] { return Unserved(node_).keep(path("f"), O_RDWR | O_APPEND); });
  ASSERT_EQ(user.result(), 0);
  EXPECT_EQ(stored(path("f")), "dirty");
  EXPECT_EQ(through(file), 1u);
  ASSERT_EQ(file.write(0, "DIRTY", 5), 5);
  EXPECT_EQ(stored(path("f")), "DIRTY");
  EXPECT_EQ(node_.status()["unserved"]["files"], 1);
  user.kill();
  EXPECT_TRUE(soon([&] { return through(file) == 0; }));
  EXPECT_EQ(node_.status()["unserved"]["files"], 0);
}

TEST_F(UnservedTest, WhoHasTheFileOpenGoesOnBehindWhatWasWrittenPastTheBuffers) {
  OpenFile file(client_, actor_, path("f"), O_RDWR | O_CREAT);
  Staying user([&] {
    if (Unserved(node_).keep(path("f")) != 0) return 1;
    const int fd = ::open(path("f").c_str(), O_WRONLY);
    return ::write(fd, "0123456789", 10) == 10 ? 0 : 2;
  });
  ASSERT_EQ(user.result(), 0);
  user.kill();
  ASSERT_TRUE(soon([&] { return through(file) == 0; }));
  ASSERT_EQ(file.write(10, "x", 1), 1);
  char bytes[16] = {};
  EXPECT_EQ(file.read(0, bytes, sizeof bytes), 11);
  EXPECT_STREQ(bytes, "0123456789x");
  ASSERT_EQ(file.sync(), 0);
  EXPECT_EQ(stored(path("f")), "0123456789x");
}

TEST_F(UnservedTest, WhatAChildInheritedStaysThroughAfterItsParentsEnd) {
  OpenFile file(client_, actor_, path("f"), O_RDWR | O_CREAT);
  int grandchild[2];
  ASSERT_EQ(::pipe(grandchild), 0);
  Staying user([&] {
    Unserved ledger(node_);
    if (ledger.keep(path("f")) != 0) return 1;
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (;;) ::pause();
    }
    (void)!::write(grandchild[1], &pid, sizeof pid);
    return 0;
  });
  ASSERT_EQ(user.result(), 0);
  pid_t pid = -1;
  ASSERT_EQ(::read(grandchild[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  user.kill();
  // A later request on another connection is behind the news of the death.
  EXPECT_EQ(Unserved(node_).keep(path("other")), 0);
  EXPECT_EQ(through(file), 1u);
  ::kill(pid, SIGKILL);
  EXPECT_TRUE(soon([&] { return through(file) == 0; }));
}

TEST_F(UnservedTest, WhoClosesItsConnectionKeepsItsFilesUntilItEnds) {
  OpenFile file(client_, actor_, path("f"), O_RDWR | O_CREAT);
  Staying user([&] {
    Unserved ledger(node_);
    if (ledger.keep(path("f")) != 0) return 1;
    ::close(ledger.descriptor());
    return Unserved(node_).keep(path("g"));
  });
  ASSERT_EQ(user.result(), 0);
  EXPECT_EQ(through(file), 1u);
  user.kill();
  EXPECT_TRUE(soon([&] { return through(file) == 0; }));
}

TEST_F(UnservedTest, ANewImageThatHasTakenOverLetsGo) {
  OpenFile file(client_, actor_, path("f"), O_RDWR | O_CREAT);
  Staying user([&] {
    Unserved ledger(node_);
    if (ledger.keep(path("f")) != 0) return 1;
    LedgerConnection::take_over(ledger.descriptor());
    return 0;
  });
  ASSERT_EQ(user.result(), 0);
  EXPECT_TRUE(soon([&] { return through(file) == 0; }));
}

TEST_F(UnservedTest, AnUnservedProcessFindsEverythingStoredAndIsCounted) {
  OpenFile file(client_, actor_, path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(file.write(0, "dirty", 5), 5);
  Staying user([&] {
    Unserved ledger(node_);
    return ledger.tell();
  });
  ASSERT_EQ(user.result(), 0);
  EXPECT_EQ(stored(path("f")), "dirty");
  const nlohmann::json foreign = node_.status()["foreign"];
  ASSERT_EQ(foreign.size(), 1u);
  EXPECT_EQ(foreign[0]["command"], "unserved");
  EXPECT_NE(foreign[0]["reason"].get<std::string>().find("clients.max"), std::string::npos);
  user.kill();
  EXPECT_TRUE(soon([&] { return node_.status()["foreign"].empty(); }));
}

TEST_F(UnservedTest, TheOffsetOfADescriptionBecomesTheKernels) {
  OpenFile file(client_, actor_, path("f"), O_RDWR | O_CREAT);
  OpenDescription& description = client_.memory().descriptions().at(file.description());
  description.offset.store(1234);
  description.flags.fetch_or(O_APPEND);
  const int fd = ::open(path("f").c_str(), O_RDWR);
  auto message = message_of(protocol::Type::kKeepThrough);
  message.description = raw(file.description());
  message.generation = description.generation.load();
  LedgerConnection ledger;
  EXPECT_EQ(ledger.keep_through(node_.client_socket().c_str(), message, fd), O_APPEND);
  EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 1234);
  EXPECT_NE(description.flags.load() & kOffsetInKernel, 0u);
  ++message.generation;
  EXPECT_EQ(ledger.keep_through(node_.client_socket().c_str(), message, fd), -ESTALE);
  ::close(fd);
}

TEST_F(UnservedTest, WhoDeclinesGivesItsSlotBack) {
  const auto slots = [&] { return node_.status()["slots_in_use"].get<int>(); };
  const int before = slots();
  Staying user([&] {
    TestClient client;
    if (!client.attach(node_.client_socket())) return 1;
    client.send_declined();
    return 0;
  });
  ASSERT_EQ(user.result(), 0);
  EXPECT_TRUE(soon([&] { return slots() == before; }));
}

TEST_F(UnservedTest, AFileThatDoesNotExistAsOneIsRefused) {
  const int fd = ::open(node_.data_directory().c_str(), O_RDONLY);
  LedgerConnection ledger;
  const auto message = message_of(protocol::Type::kKeepThrough);
  EXPECT_EQ(ledger.keep_through(node_.client_socket().c_str(), message, fd), -EINVAL);
  EXPECT_EQ(ledger.keep_through((node_.client_socket() + "-not").c_str(), message, fd), -ENOENT)
      << "the connection that is there leads elsewhere";
  ::close(fd);
}

// The table of objects is full when an unserved process opens a file; room is made, and a client
// opens the same file: there is one truth of it.
TEST(UnservedKeys, AFileWithoutAnObjectIsMetByWhoMakesOne) {
  NodeOptions options;
  options.ram_bytes = 1 << 20;
  NodeProcess node{options};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  TestClient client;
  ASSERT_TRUE(client.attach(node.client_socket()));
  Actor actor = client.make_actor(0);
  const std::string path = node.data_directory() + "/f";
  ObjectTable& objects = client.memory().objects();
  const auto fill = [&](bool add) {
    Acquisition how;
    for (std::uint64_t inode = 1; inode <= objects.capacity(); ++inode) {
      const ObjectKey key = file_key(99, inode, 1);
      if (add) {
        (void)objects.acquire(key, StoreStamp{}, actor.self, actor.owners(), &how);
      } else if (const ObjectIndex index = objects.find(key); index != ObjectIndex::kNone) {
        objects.at(index).opens.store(0);
        // The organizer may have been first, which looks for idle records where few are free.
        EXPECT_TRUE(objects.reclaim(index, actor.self, actor.owners()) ||
                    objects.find(key) == ObjectIndex::kNone);
      }
    }
  };
  fill(true);
  Staying user([&] { return Unserved(node).keep(path); });
  EXPECT_EQ(user.result(), 0);
  EXPECT_EQ(client.memory().unserved_board().keys.load(), 1u);
  fill(false);
  {
    OpenFile file(client, actor, path, O_RDWR);
    ASSERT_TRUE(file.is_open());
    EXPECT_EQ(objects.at(file.object()).through.load(), 1u);
    ASSERT_EQ(file.write(0, "now", 3), 3);
    EXPECT_EQ(stored(path), "now");
    EXPECT_EQ(client.memory().unserved_board().keys.load(), 0u);
    user.kill();
    EXPECT_TRUE(soon([&] { return users_of(client, file) == 0; }));
  }
}

TEST(UnservedKeys, OnesThatNobodyMetEndWithTheirUser) {
  NodeOptions options;
  options.ram_bytes = 1 << 20;
  NodeProcess node{options};
  TestClient client;
  ASSERT_TRUE(client.attach(node.client_socket()));
  Actor actor = client.make_actor(0);
  ObjectTable& objects = client.memory().objects();
  Acquisition how;
  for (std::uint64_t inode = 1; inode <= objects.capacity(); ++inode)
    (void)objects.acquire(file_key(99, inode, 1), StoreStamp{}, actor.self, actor.owners(), &how);
  Staying user([&] { return Unserved(node).keep(node.data_directory() + "/f"); });
  EXPECT_EQ(user.result(), 0);
  EXPECT_EQ(client.memory().unserved_board().keys.load(), 1u);
  user.kill();
  EXPECT_TRUE(soon([&] { return client.memory().unserved_board().keys.load() == 0; }));
}

}  // namespace
}  // namespace cairn::testing
