// SPDX-License-Identifier: Apache-2.0
// Clients of one account that want more of the service than they should.
#include "service/control/control_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <list>
#include <string>

#include "base/testing/temporary_folder.h"
#include "base/testing/without_threads.h"

namespace cairn::node {
namespace {

// Repeats the request, which may ask for a longer answer.
class Echo final : public ControlHandler {
 public:
  void on_request(ControlPeer& peer, std::uint64_t, const Json& request) override {
    peer.send({{"kind", "done"},
               {"command", request.value("command", "")},
               {"text", std::string(request.value("length", 0u), 'x')}});
  }
  void on_close(std::uint64_t) override {}
};

class Client {
 public:
  explicit Client(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const auto* place = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(socket_.get(), place, sizeof address), 0);
  }
  // Returns: whether the service takes all of it.
  bool say(const std::string& line, int flags = 0) const {
    const std::string text = line + "\n";
    const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), flags | MSG_NOSIGNAL);
    return sent == static_cast<ssize_t>(text.size());
  }
  // One line without its end; empty at the end of the conversation.
  std::string hear() const {
    std::string line;
    char byte = 0;
    while (::recv(socket_.get(), &byte, 1, 0) == 1 && byte != '\n') line += byte;
    return line;
  }
  std::string ask(const std::string& command) const {
    (void)say(R"({"command":")" + command + R"("})");
    return hear();
  }

 private:
  UniqueFd socket_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

class ControlServing : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/control.sock"; }

  const cairn::testing::TemporaryFolder folder_{"cairn-control"};
  Echo echo_;
};

// Not the service's end: others are under way.
TEST_F(ControlServing, AConnectionWithoutAThreadHearsWhy) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another account";
  ASSERT_EQ(::chown(folder_.path().c_str(), cairn::testing::kNobody, cairn::testing::kNobody), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(cairn::testing::kNobody) != 0 || ::setuid(cairn::testing::kNobody) != 0)
      ::_exit(2);
    ControlServer server(echo_);
    if (!server.start(path())) ::_exit(3);
    const rlimit one{1, 1};
    if (::setrlimit(RLIMIT_NPROC, &one) != 0) ::_exit(4);
    const std::string heard = Client(path()).hear();
    ::_exit(heard.find("ulimit -u") != std::string::npos ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// It would keep the node from its end.
TEST_F(ControlServing, AClientThatDoesNotReadKeepsNobodyFromTheEnd) {
  ControlServer server(echo_);
  ASSERT_TRUE(server.start(path()));
  const Client greedy(path());
  while (greedy.say(R"({"command":"status","length":100000})", MSG_DONTWAIT)) continue;
  const Client patient(path());
  EXPECT_NE(patient.ask("status").find("done"), std::string::npos);
  const auto began = std::chrono::steady_clock::now();
  server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
  EXPECT_EQ(patient.hear(), "");
}

// Runs may take most of the places for good.
TEST_F(ControlServing, TheLastPlacesAreForTheEndOfTheNode) {
  ControlServer server(echo_);
  ASSERT_TRUE(server.start(path()));
  std::list<Client> runs;
  for (std::size_t run = 0; run < ControlServer::kConnectionsMax - ControlServer::kLastPlaces;
       ++run)
    EXPECT_NE(runs.emplace_back(path()).ask("run-begin").find("done"), std::string::npos);
  EXPECT_NE(Client(path()).ask("run-begin").find("no place"), std::string::npos);
  EXPECT_NE(Client(path()).ask("shutdown").find("done"), std::string::npos);
  // Those who watch get an answer, and keep no place.
  for (std::size_t watcher = 0; watcher < 3 * ControlServer::kLastPlaces; ++watcher) {
    const Client& top = runs.emplace_back(path());
    EXPECT_NE(top.ask("status").find("done"), std::string::npos) << watcher;
    EXPECT_EQ(top.hear(), "") << "the end of the connection";
  }
  std::list<Client> silent;
  while (silent.size() <= ControlServer::kLastPlaces) silent.emplace_back(path());
  EXPECT_NE(Client(path()).hear().find("no place"), std::string::npos);
}

TEST_F(ControlServing, ThoseWhoAskNothingMakePlace) {
  ControlServer server(echo_);
  ASSERT_TRUE(server.start(path()));
  const Client run(path());
  EXPECT_NE(run.ask("run-begin").find("done"), std::string::npos);
  std::list<Client> silent;
  while (silent.size() < ControlServer::kConnectionsMax) silent.emplace_back(path());
  const auto answer = [this] { return Client(path()).ask("run-begin"); };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::string heard = answer();
  while (heard.find("done") == std::string::npos && std::chrono::steady_clock::now() < until)
    heard = answer();
  EXPECT_NE(heard.find("done"), std::string::npos) << heard;
  EXPECT_NE(run.ask("run-end").find("done"), std::string::npos) << "one that has asked stays";
}

// Parsed, each of them takes many times its bytes in memory.
TEST_F(ControlServing, ARequestOfTooManyValuesIsRefused) {
  ControlServer server(echo_);
  ASSERT_TRUE(server.start(path()));
  const Client client(path());
  std::string zeros = R"({"command":"status","x":[0)";
  for (std::size_t value = 0; value < ControlServer::kValuesMax; ++value) zeros += ",0";
  EXPECT_TRUE(client.say(zeros + "]}"));
  EXPECT_NE(client.hear().find("larger than the service takes"), std::string::npos);
  std::string names = R"({"command":"status","paths":["/a")";
  for (int name = 0; name < 500'000; ++name) names += R"(,"/a/file,[name]:of a long list")";
  EXPECT_TRUE(client.say(names + "]}"));
  EXPECT_NE(client.hear().find("done"), std::string::npos);
}

}  // namespace
}  // namespace cairn::node
