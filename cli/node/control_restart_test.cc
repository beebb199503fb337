// SPDX-License-Identifier: Apache-2.0
// A service dies at every place of a request, and another one goes on with its connections: the
// test is their keeper, whose descriptors a service shares as long as it lives.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>

#include "cli/node/control_client.h"
#include "cli/node/control_socket.h"
#include "service/control/control_server.h"
#include "service/keeping/kept_descriptors.h"
#include "service/process/local_socket.h"

namespace cairn::cli {
namespace {

using node::ControlPeer;
using node::ControlServer;
using node::KeptDescriptors;
using node::KeptMemory;
using node::LeftControl;

constexpr int kDescriptorsMax = 1024;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~Pipe() {
    for (const int end : ends_) ::close(end);
  }
  int in() const { return ends_[1]; }
  void write() const { ASSERT_EQ(::write(ends_[1], "x", 1), 1); }
  void await() const {
    char byte = 0;
    ASSERT_EQ(::read(ends_[0], &byte, 1), 1);
  }

 private:
  std::array<int, 2> ends_{};
};

// Answers with the name of its service, and remembers what it was asked.
class Answers final : public node::ControlHandler {
 public:
  using Act = std::function<void(ControlPeer& peer, const Json& request)>;
  explicit Answers(std::string service, Act act = nullptr)
      : service_(std::move(service)), act_(std::move(act)) {}

  void on_request(ControlPeer& peer, std::uint64_t session, const Json& request) override {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request.value("command", ""));
    }
    if (act_) return act_(peer, request);
    peer.send({{"kind", "done"},
               {"service", service_},
               {"command", request.value("command", "")},
               {"session", session}});
  }
  void on_close(std::uint64_t session) override {
    if (!is_closed_.exchange(true)) closed_.set_value(session);
  }

  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  // The first that was closed.
  std::uint64_t await_closed() { return closed_.get_future().get(); }

 private:
  const std::string service_;
  const Act act_;
  std::mutex mutex_;
  std::vector<std::string> asked_;
  std::atomic<bool> is_closed_{false};
  std::promise<std::uint64_t> closed_;
};

class ControlRestartTest : public ::testing::Test {
 protected:
  ControlRestartTest() {
    std::string path = ::testing::TempDir() + "cairn-control-test-XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    node_.name = "n";
    node_.directory = path;
    node_.control_socket = node_.directory + "/control.sock";
  }
  ~ControlRestartTest() override {
    kill_service();
    std::filesystem::remove_all(node_.directory);
  }
  // Forks the first service, which answers by `act`.
  void start(Answers::Act act) {
    act_ = std::move(act);
    static std::array<char, 1 << 20> stack;
    service_ = ::clone(&serve, stack.data() + stack.size(), CLONE_FILES | SIGCHLD, this);
    ASSERT_GT(service_, 0);
    started_.await();
  }
  void kill_service() {
    if (service_ <= 0) return;
    ::kill(service_, SIGKILL);
    ::waitpid(service_, nullptr, 0);
    service_ = 0;
  }
  // The service reads nothing from now on.
  void freeze_service() const {
    ::kill(service_, SIGSTOP);
    ::waitpid(service_, nullptr, WUNTRACED);
  }
  // The service has read all that was sent.
  static void await_read(int socket) {
    int unread = 1;
    while (unread != 0) ASSERT_EQ(::ioctl(socket, SIOCOUTQ, &unread), 0);
  }
  LeftControl left() const {
    std::vector<int> open;
    for (int fd = 0; fd < kDescriptorsMax; ++fd) {
      if (::fcntl(fd, F_GETFD) >= 0) open.push_back(fd);
    }
    return node::find_left_control(labels_, open);
  }
  void succeed() {
    kill_service();
    next_.emplace("second");
    server_.emplace(*next_, &labels_);
    const LeftControl all = left();
    ASSERT_TRUE(server_->adopt(all).is_ok());
  }
  // The answer is that of the second service, and so is that of the request after it.
  void expect_answered_by_successor(const Json& reply, const char* command) {
    EXPECT_EQ(reply.value("service", ""), "second");
    EXPECT_EQ(reply.value("command", ""), command);
    EXPECT_EQ(client_->request({{"command", "after"}}).value("command", ""), "after");
    EXPECT_EQ(next_->asked(), (std::vector<std::string>{command, "after"})) << "each once";
  }

  // What the first service does.
  static void answer(ControlPeer& peer, const Json& request) {
    peer.send({{"kind", "done"}, {"service", "first"}, {"command", request.value("command", "")}});
  }

  KeptMemory kept_ = std::move(KeptMemory::create().value());
  KeptDescriptors labels_{kept_};
  NodePaths node_;
  Pipe started_;
  Pipe reached_;
  Answers::Act act_;
  pid_t service_ = 0;
  std::optional<Answers> next_;
  std::optional<ControlServer> server_;
  std::optional<ControlClient> client_;

 private:
  static int serve(void* self) {
    auto* test = static_cast<ControlRestartTest*>(self);
    Answers answers("first", test->act_);
    ControlServer server(answers, &test->labels_);
    if (!server.start(test->node_.control_socket)) ::_exit(1);
    test->started_.write();
    for (;;) ::pause();
  }
};

TEST_F(ControlRestartTest, ARequestThatWasNotReadIsAnswered) {
  start(answer);
  client_.emplace(node_);
  EXPECT_EQ(client_->request({{"command", "before"}}).value("service", ""), "first");
  freeze_service();
  client_->send({{"command", "lost"}});
  succeed();
  expect_answered_by_successor(client_->receive(), "lost");
}

TEST_F(ControlRestartTest, ARequestThatWasReadIsAnswered) {
  start([this](ControlPeer&, const Json&) {
    reached_.write();
    ::pause();
  });
  client_.emplace(node_);
  client_->send({{"command", "lost"}});
  reached_.await();
  succeed();
  expect_answered_by_successor(client_->receive(), "lost");
}

TEST_F(ControlRestartTest, ARequestThatWasAnsweredIsNotAnsweredAgain) {
  start([this](ControlPeer& peer, const Json& request) {
    answer(peer, request);
    reached_.write();
  });
  client_.emplace(node_);
  client_->send({{"command", "early"}});
  reached_.await();
  succeed();
  EXPECT_EQ(client_->receive().value("service", ""), "first");
  expect_answered_by_successor(client_->request({{"command", "next"}}), "next");
}

TEST_F(ControlRestartTest, HalfAnAnswerIsPassedOver) {
  start([this](ControlPeer& peer, const Json&) {
    peer.send({{"kind", "progress"}});
    const LeftControl mine = left();
    const std::string half = R"({"kind":"done","service":"fi)";
    (void)!::write(mine.connections.at(0).socket, half.data(), half.size());
    reached_.write();
    ::pause();
  });
  client_.emplace(node_);
  client_->send({{"command", "lost"}});
  reached_.await();
  succeed();
  expect_answered_by_successor(client_->receive(), "lost");
}

TEST_F(ControlRestartTest, ARequestOnItsWayIsAnsweredOnce) {
  start(answer);
  client_.emplace(node_);
  client_->request({{"command", "before"}});
  succeed();
  // It lies behind "restarted", which the client reads afterwards, and sends it again.
  expect_answered_by_successor(client_->request({{"command", "new"}}), "new");
}

TEST_F(ControlRestartTest, HalfARequestIsPassedOver) {
  start(answer);
  const int socket = connect_to_node(node_.control_socket);
  const auto say = [socket](const std::string& text) {
    ASSERT_EQ(::send(socket, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  };
  const auto hear = [socket] {
    std::string line;
    char byte = 0;
    while (byte != '\n' && ::recv(socket, &byte, 1, 0) == 1) line += byte;
    return line;
  };
  say("{\"command\":\"before\",\"id\":1}\n");
  hear();
  say(R"({"command":"lost","id":)");
  await_read(socket);
  succeed();
  EXPECT_EQ(hear(), std::string(1, ControlServer::kCancel) + "\n");
  EXPECT_EQ(hear(), "{\"kind\":\"restarted\"}\n");
  say("2}\n{\"command\":\"lost\",\"id\":2}\n{\"command\":\"lost\",\"id\":2}\n");
  EXPECT_NE(hear().find("\"id\":2"), std::string::npos);
  say("{\"command\":\"plain\"}\n");
  const std::string plain = hear();
  EXPECT_NE(plain.find("\"command\":\"plain\""), std::string::npos) << "2 is answered once";
  EXPECT_EQ(plain.find("\"id\""), std::string::npos);
  say("no object\n");
  EXPECT_NE(hear().find("not a JSON object"), std::string::npos);
  ::close(socket);
}

// Two services have died before the client read that the first had: both answered the repetition.
TEST_F(ControlRestartTest, ASecondAnswerIsPassedOver) {
  auto listener = node::listen_at(node_.control_socket, SOCK_STREAM);
  ASSERT_TRUE(listener.is_ok());
  client_.emplace(node_);
  client_->send({{"command", "x"}});
  const node::UniqueFd socket(::accept(listener->get(), nullptr, nullptr));
  const auto answer_to = [](int number) {
    return "{\"kind\":\"done\",\"id\":" + std::to_string(number) + "}\n";
  };
  const std::string restarted = "\x18\n{\"kind\":\"restarted\"}\n";
  const std::string said = restarted + answer_to(1) + restarted + answer_to(1) + answer_to(2);
  ASSERT_EQ(::send(socket.get(), said.data(), said.size(), 0), static_cast<ssize_t>(said.size()));
  EXPECT_EQ(client_->receive().value("id", 0), 1);
  EXPECT_EQ(client_->request({{"command", "y"}}).value("id", 0), 2);
}

TEST_F(ControlRestartTest, ConnectionsKeepTheirNumbers) {
  start([](ControlPeer& peer, const Json&) { peer.send({{"kind", "done"}}); });
  ControlClient other(node_);
  other.request({{"command", "x"}});
  client_.emplace(node_);
  client_->request({{"command", "x"}});
  succeed();
  EXPECT_EQ(other.request({{"command", "x"}}).value("session", 0), 1);
  EXPECT_EQ(client_->request({{"command", "x"}}).value("session", 0), 2);
  EXPECT_EQ(ControlClient(node_).request({{"command", "x"}}).value("session", 0), 3);
}

TEST_F(ControlRestartTest, ACloseThatNobodySawIsSeen) {
  start(answer);
  client_.emplace(node_);
  client_->request({{"command", "x"}});
  freeze_service();
  client_.reset();
  succeed();
  EXPECT_EQ(next_->await_closed(), 1u);
}

TEST_F(ControlRestartTest, AConnectionWithoutALabelIsKnownByItsName) {
  start(answer);
  client_.emplace(node_);
  client_->request({{"command", "before"}});
  kill_service();
  labels_.forget(left().connections.at(0).socket);
  succeed();
  expect_answered_by_successor(client_->request({{"command", "new"}}), "new");
}

TEST_F(ControlRestartTest, WhoeverComesMeanwhileWaitsAndSaysSoOnce) {
  start(answer);
  kill_service();
  const Pipe said;
  const int real = ::dup(STDERR_FILENO);
  ::dup2(said.in(), STDERR_FILENO);
  client_.emplace(node_);
  auto reply =
      std::async(std::launch::async, [this] { return client_->request({{"command", "status"}}); });
  said.await();
  ::dup2(real, STDERR_FILENO);
  ::close(real);
  succeed();
  expect_answered_by_successor(reply.get(), "status");
}

}  // namespace
}  // namespace cairn::cli
