// SPDX-License-Identifier: Apache-2.0
// Harm that a program of the user's own can do to the service without meaning to: bytes of any kind
// on both sockets, and stray stores into the memory that it shares with the service. The service
// lives, answers, and ends on command. CAIRN_SEED repeats a run.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "multiprocess/node_process.h"
#include "multiprocess/test_client.h"

namespace cairn::testing {
namespace {

using Random = std::mt19937_64;

unsigned first_seed() {
  const char* given = std::getenv("CAIRN_SEED");
  return given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
}

int connect_to(const std::string& path, int type) {
  const int socket = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return socket;
  ::close(socket);
  return -1;
}

// What each of the process's descriptors is, as /proc says it. Not its rings, which a thread of the
// service makes when it first needs one.
std::vector<std::string> descriptors_of(pid_t pid) {
  std::vector<std::string> all;
  std::error_code ignored;  // one that is closed meanwhile
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    const std::string what = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (what != "anon_inode:[io_uring]") all.push_back(what);
  }
  return all;
}

// One message with `count` descriptors of /dev/null.
void send_bytes(int socket, const std::string& bytes, std::size_t count) {
  const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (count != 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(int) * count);
    for (std::size_t at = 0; at < count; ++at)
      std::memcpy(CMSG_DATA(item) + at * sizeof fd, &fd, sizeof fd);
  }
  (void)!::sendmsg(socket, &header, MSG_NOSIGNAL);
  ::close(fd);
}

// Any type, objects near the ends of their range, lengths that are right and wrong.
std::string random_message(Random& random) {
  protocol::ObjectMessage message;
  message.header.type = static_cast<protocol::Type>(random() % 14);
  const std::array<std::uint32_t, 6> objects{
      0, 1, 4095, 4096, 0xffffffffU, static_cast<std::uint32_t>(random())};
  message.object = objects[random() % objects.size()];
  message.durable = static_cast<std::uint32_t>(random() % 3);
  message.is_lent = static_cast<std::uint32_t>(random() % 3);
  std::string bytes(reinterpret_cast<const char*>(&message), sizeof message);
  const std::array<std::size_t, 5> lengths{sizeof message, sizeof(protocol::Hello), 8, 256,
                                           random() % 400 + 1};
  bytes.resize(lengths[random() % lengths.size()], static_cast<char>(random()));
  return bytes;
}

// A node that nobody uses has about twenty.
constexpr std::size_t kDescriptorsAtRest = 30;

// Waits until there are at most `enough` of them, or long enough.
std::vector<std::string> descriptors_left(pid_t pid, std::size_t enough) {
  constexpr int kLooks = 500;
  std::vector<std::string> all = descriptors_of(pid);
  for (int look = 0; look < kLooks && all.size() > enough; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    all = descriptors_of(pid);
  }
  return all;
}

void send_random_messages(const NodeProcess& node, Random& random, int connections) {
  for (int round = 0; round < connections; ++round) {
    const int socket = connect_to(node.client_socket(), SOCK_SEQPACKET);
    ASSERT_GE(socket, 0) << "the service is gone: " << node.log();
    for (int count = static_cast<int>(random() % 4); count >= 0; --count)
      send_bytes(socket, random_message(random), random() % 3 == 0 ? random() % 5 : 0);
    ::close(socket);
  }
}

TEST(Hostile, NoMessageOfAClientEndsTheServiceOrLeavesDescriptorsWithIt) {
  NodeProcess node{NodeOptions{}};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  Random random(first_seed());
  // What it opens after it has said that it is ready, it has opened then.
  send_random_messages(node, random, 30);
  const auto before = descriptors_left(node.pid(), kDescriptorsAtRest);
  {
    TestClient attached;
    ASSERT_TRUE(attached.attach(node.client_socket()));
    protocol::ObjectMessage message;
    message.header.type = protocol::Type::kDiscarded;
    for (const std::uint32_t object : {0U, 4096U, 0xffffffffU}) {
      attached.discarded(static_cast<ObjectIndex>(object));
      attached.send_bytes(&message, 3);
    }
    attached.send_foreign("/bin/static");
    // It is still attached: its connection's end would have told it that the service is dead.
    EXPECT_FALSE(attached.is_gone(attached.memory().owners().current(ClientSlot::kOfService)));
    send_random_messages(node, random, 300);
    EXPECT_EQ(node.status()["service_pid"], node.pid()) << node.log();
  }
  // This process, which lives, is still watched.
  const auto after = descriptors_left(node.pid(), before.size() + 4);
  EXPECT_LE(after.size(), before.size() + 4)
      << ::testing::PrintToString(before) << ", then " << ::testing::PrintToString(after);
  EXPECT_EQ(node.shut_down(), 0);
}

nlohmann::json random_value(Random& random, int depth) {
  using nlohmann::json;
  switch (random() % 12) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return -1;
    case 3:
      return UINT64_MAX;
    case 4:
      return 1e308;
    case 5:
      return "";
    case 6:
      return std::string(300, 'a');
    case 7:
      return "\xff\xfe\n";
    case 8:
      return random() % 100;
    case 9:
      return json::array();
    case 10:
      return depth == 0 ? json::object() : json::array({random_value(random, depth - 1)});
    default:
      return depth == 0
                 ? json(0)
                 : json{{random() % 2 == 0 ? "tier" : "bytes", random_value(random, depth - 1)}};
  }
}

// All commands but those that are to end the service, with fields of every kind.
std::string random_request(Random& random) {
  static const std::vector<std::string> kCommands{
      "status", "drain",   "run-begin", "run-end", "explain",  "config",   "set",
      "stage",  "heatmap", "trace",     "declare", "nonsense", "progress", "schema"};
  static const std::vector<std::string> kFields{
      "run",   "directory", "command_line", "weight", "reserve", "settings",
      "rules", "scratch",   "device",       "inode",  "path",    "size",
      "files", "paths",     "tier",         "mode",   "pattern", "timeout_seconds",
      "order", "epochs",    "wait"};
  nlohmann::json request = {{"command", kCommands[random() % kCommands.size()]},
                            {"timeout_seconds", 0.01}};
  for (std::size_t left = random() % 6; left > 0; --left)
    request[kFields[random() % kFields.size()]] = random_value(random, 2);
  std::string text = request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (std::size_t left = random() % 3 == 0 ? random() % 4 : 0; left > 0; --left)
    text[random() % text.size()] = static_cast<char>(random());
  return text + "\n";
}

TEST(Hostile, NoRequestOnTheControlSocketEndsTheService) {
  NodeProcess node{NodeOptions{}};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  const std::string path = node.client_socket().substr(0, node.client_socket().rfind('/'));
  Random random(first_seed());
  for (int round = 0; round < 150; ++round) {
    const int socket = connect_to(path + "/control.sock", SOCK_STREAM);
    ASSERT_GE(socket, 0) << "the service is gone: " << node.log();
    for (int count = 0; count < 4; ++count) {
      const std::string text = random_request(random);
      if (text.find("shutdown") != std::string::npos) continue;
      (void)!::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    }
    ::shutdown(socket, SHUT_WR);
    char answers[4096];
    const timeval patience{5, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while (::recv(socket, answers, sizeof answers, 0) > 0) {
    }
    ::close(socket);
  }
  EXPECT_EQ(node.status()["service_pid"], node.pid()) << node.log();
  // A walk over a deep value would take all of the stack.
  const std::string brackets(1'000'000, '[');
  for (const std::string& deep : {brackets + "\n", "{\"command\":\"status\",\"deep\":" + brackets +
                                                       std::string(brackets.size(), ']') + "}\n"}) {
    const int socket = connect_to(path + "/control.sock", SOCK_STREAM);
    (void)!::send(socket, deep.data(), deep.size(), MSG_NOSIGNAL);
    ::shutdown(socket, SHUT_WR);
    char answer = 0;
    EXPECT_EQ(::recv(socket, &answer, 1, 0), 1);
    ::close(socket);
  }
  EXPECT_EQ(node.shut_down(), 0);
}

// The tables of the control segment, the beginnings of large ones once more, and all of it.
struct Part {
  std::byte* begin;
  std::size_t bytes;
};

std::vector<Part> parts_of(const NodeMemory& memory) {
  std::byte* const base = memory.control().base();
  const MemoryMap map(memory.shape());
  std::vector<Part> parts;
  // Not the identity, which each process reads once, at the attach.
  for (const TableRow& row : map.rows().subspan(1)) {
    if (row.bytes() < 8) continue;
    parts.push_back(Part{base + row.offset, row.bytes()});
    constexpr std::uint64_t kFewBytes = 16 * 1024;
    if (row.bytes() > kFewBytes) parts.push_back(Part{base + row.offset, kFewBytes});
  }
  const std::uint64_t first = map.rows()[1].offset;
  parts.push_back(Part{base + first, map.end() - first});
  return parts;
}

std::uint64_t stray_word(Random& random, std::uint64_t old) {
  switch (random() % 7) {
    case 0:
      return 0;
    case 1:
      return ~std::uint64_t{0};
    case 2:
      return random();
    case 3:
      return random() % 64;
    case 4:
      return (random() % 64) << 32 | random() % 64;
    case 5:
      return old ^ std::uint64_t{1} << random() % 64;
    default:
      return old + 1;
  }
}

// Stores that go astray, in a process of its own: most of them where something stands.
void scribble(const NodeMemory& memory, Random& random, int stores) {
  const std::vector<Part> parts = parts_of(memory);
  for (int store = 0; store < stores; ++store) {
    const Part& part = parts[random() % parts.size()];
    auto* word = reinterpret_cast<std::uint64_t*>(part.begin) + random() % (part.bytes / 8);
    std::uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (int look = 0; old == 0 && look < 20; ++look) {
      word = reinterpret_cast<std::uint64_t*>(part.begin) + random() % (part.bytes / 8);
      old = __atomic_load_n(word, __ATOMIC_RELAXED);
    }
    __atomic_store_n(word, stray_word(random, old), __ATOMIC_RELAXED);
  }
}

// Opens, writes, reads, truncates and closes files until it is killed, or dies of what it finds.
[[noreturn]] void work(const NodeProcess& node, const std::string& name, unsigned seed) {
  TestClient client;
  if (!client.attach(node.client_socket(), seed)) ::_exit(1);
  Actor actor = client.make_actor(0);
  Random random(seed);
  std::vector<char> bytes(100'000, 'x');
  for (unsigned round = 0;; ++round) {
    OpenFile file(client, actor, node.data_directory() + "/" + name + std::to_string(round % 5),
                  O_RDWR | O_CREAT);
    if (!file.is_open()) continue;
    for (int call = 0; call < 10; ++call) {
      const std::uint64_t offset = random() % 1'000'000;
      (void)file.write(offset, bytes.data(), random() % bytes.size());
      (void)file.read(random() % 1'000'000, bytes.data(), random() % bytes.size());
    }
  }
}

pid_t in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  // What it meets there is its own affair.
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) ::signal(signal, SIG_DFL);
  body();
  ::_exit(0);
}

void kill_and_wait(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

class StrayStores : public ::testing::TestWithParam<unsigned> {};

TEST_P(StrayStores, NeverEndTheService) {
#ifndef NDEBUG
  GTEST_SKIP() << "the assertions of this build are to end a service that finds what is scribbled";
#endif
  const unsigned seed = first_seed() * 1000 + GetParam();
  NodeOptions options;
  options.file_tier_bytes = 4 << 20;
  NodeProcess node{options};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  const std::vector<pid_t> workers{in_child([&] { work(node, "a", seed); }),
                                   in_child([&] { work(node, "b", seed + 1); })};
  const pid_t scribbler = in_child([&] {
    TestClient client;
    if (!client.attach(node.client_socket())) ::_exit(1);
    Random random(seed);
    for (int burst = 0; burst < 25; ++burst) {
      scribble(client.memory(), random, 40);
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
    }
  });
  ::waitpid(scribbler, nullptr, 0);
  for (const pid_t worker : workers) kill_and_wait(worker);
  EXPECT_TRUE(node.is_running()) << "seed " << seed << ": " << node.log();
  EXPECT_EQ(node.status_within(10)["service_pid"], node.pid()) << "seed " << seed;
  // The first signal asks for everything to be stored, the second for the end.
  node.signal(SIGTERM);
  int status = node.wait_for_exit(2);
  if (status < 0) {
    node.signal(SIGTERM);
    status = node.wait_for_exit(25);
  }
  EXPECT_TRUE(status == 0 || status == 74) << "seed " << seed << ": " << status << node.log();
}

INSTANTIATE_TEST_SUITE_P(Seeds, StrayStores, ::testing::Range(0U, 2U));

}  // namespace
}  // namespace cairn::testing
