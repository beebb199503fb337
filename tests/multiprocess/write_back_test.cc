// SPDX-License-Identifier: Apache-2.0
// What clients write reaches the backing store: in the background, on request, at the drain; and
// what cannot be stored is kept and named.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "multiprocess/node_process.h"
#include "multiprocess/test_client.h"

namespace cairn::testing {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string pattern(std::size_t length, unsigned seed) {
  std::string text(length, 0);
  for (std::size_t at = 0; at < length; ++at)
    text[at] = static_cast<char>((at * 31 + seed * 7 + at / 4096) & 0xff);
  return text;
}

// A client writes `data` in pieces and dies without closing anything.
int write_and_die(const NodeProcess& node, const std::string& path, const std::string& data,
                  std::size_t piece) {
  return in_child([&] {
    TestClient client;
    if (!client.attach(node.client_socket())) return 1;
    Actor actor = client.make_actor(0);
    OpenFile file(client, actor, path, O_RDWR | O_CREAT);
    if (!file.is_open()) return 2;
    for (std::size_t at = 0; at < data.size(); at += piece) {
      const std::size_t length = std::min(piece, data.size() - at);
      if (file.write(at, data.data() + at, length) != static_cast<ssize_t>(length)) return 3;
    }
    ::kill(::getpid(), SIGKILL);
    return 4;
  });
}

class WriteBack : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  NodeOptions options() const {
    NodeOptions options;
    options.file_tier_bytes = GetParam();
    return options;
  }
};

TEST_P(WriteBack, DataOfAKilledClientIsStored) {
  NodeProcess node{options()};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  const std::string path = node.data_directory() + "/file";
  const std::string data = pattern(1'234'567, 1);
  ASSERT_EQ(write_and_die(node, path, data, 50'000), 128 + SIGKILL);
  const nlohmann::json drained = node.request({{"command", "drain"}});
  EXPECT_EQ(drained["stored"], true) << drained.dump();
  EXPECT_EQ(content_of(path), data);
  EXPECT_EQ(node.shut_down(), 0) << node.log();
}

TEST_P(WriteBack, MoreThanTheTiersHold) {
  NodeProcess node{options()};
  const std::string path = node.data_directory() + "/large";
  const std::string data = pattern(24 << 20, 2);
  ASSERT_EQ(write_and_die(node, path, data, 300'000), 128 + SIGKILL);
  EXPECT_EQ(node.request({{"command", "drain"}})["stored"], true);
  EXPECT_TRUE(content_of(path) == data);
  // And read back through the tiers by somebody else, twice.
  EXPECT_EQ(in_child([&] {
              TestClient client;
              if (!client.attach(node.client_socket())) return 1;
              Actor actor = client.make_actor(0);
              OpenFile file(client, actor, path, O_RDONLY);
              std::string read(data.size(), 0);
              for (int round = 0; round < 2; ++round) {
                for (std::size_t at = 0; at < data.size(); at += 100'000) {
                  const std::size_t length = std::min<std::size_t>(100'000, data.size() - at);
                  if (file.read(at, read.data() + at, length) != static_cast<ssize_t>(length))
                    return 2;
                }
                if (read != data) return 3;
              }
              return 0;
            }),
            0);
  EXPECT_EQ(node.shut_down(), 0);
}

TEST_P(WriteBack, HappensInTheBackground) {
  NodeProcess node{options()};
  const std::string path = node.data_directory() + "/background";
  const std::string data = pattern(200'000, 3);
  ASSERT_EQ(write_and_die(node, path, data, 4096), 128 + SIGKILL);
  for (int attempt = 0; attempt < 1000 && content_of(path) != data; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(content_of(path) == data);
  EXPECT_EQ(node.shut_down(), 0);
}

TEST_P(WriteBack, AReaderHasTheServiceFlush) {
  NodeOptions slow = options();
  slow.flush_delay_ms = 3'600'000;
  NodeProcess node{slow};
  const std::string path = node.data_directory() + "/requested";
  const std::string data = pattern(300'000, 4);
  ASSERT_EQ(write_and_die(node, path, data, 70'000), 128 + SIGKILL);
  EXPECT_EQ(in_child([&] {
              TestClient client;
              if (!client.attach(node.client_socket())) return 1;
              Actor actor = client.make_actor(0);
              OpenFile file(client, actor, path, O_RDONLY);
              return file.sync() == 0 ? 0 : 2;
            }),
            0);
  EXPECT_TRUE(content_of(path) == data);
  EXPECT_EQ(node.shut_down(), 0);
}

// A client writes a file, removes it and is killed.
void expect_unlinked_file_forgotten(const NodeOptions& options, bool is_stored_before) {
  NodeProcess node{options};
  const std::string path = node.data_directory() + "/gone";
  const std::string data = pattern(500'000, 5);
  EXPECT_EQ(in_child([&] {
              TestClient client;
              if (!client.attach(node.client_socket())) return 1;
              Actor actor = client.make_actor(0);
              OpenFile file(client, actor, path, O_RDWR | O_CREAT);
              if (file.write(0, data.data(), data.size()) != static_cast<ssize_t>(data.size()))
                return 2;
              if (is_stored_before && file.sync() != 0) return 4;
              ::unlink(path.c_str());
              unlink_object(actor, file.object());
              ::kill(::getpid(), SIGKILL);
              return 3;
            }),
            128 + SIGKILL);
  ASSERT_TRUE(node.wait_until_reaped(0, 5));
  for (int attempt = 0; attempt < 500 && node.status()["open_store_files"] != 0; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(node.status()["open_store_files"], 0);
  EXPECT_EQ(node.status()["tiers"][0]["used_bytes"], 0);
  EXPECT_EQ(node.shut_down(), 0);
}

TEST_P(WriteBack, AnUnlinkedFileOfAKilledClientIsForgotten) {
  expect_unlinked_file_forgotten(options(), false);
}

TEST_P(WriteBack, AnUnlinkedFileOfAKilledClientIsForgottenThoughItWasStored) {
  expect_unlinked_file_forgotten(options(), true);
}

INSTANTIATE_TEST_SUITE_P(Tiers, WriteBack, ::testing::Values(0, 8 << 20));

// A file size limit makes the service's writes fail with EFBIG, whoever runs the test.
TEST(WriteBackErrors, AreKeptNamedAndRetried) {
  NodeProcess node{NodeOptions{}};
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100'000, RLIM_INFINITY};
  rlimit before{};
  ASSERT_EQ(::prlimit(node.pid(), RLIMIT_FSIZE, &small, &before), 0);
  const std::string path = node.data_directory() + "/unstorable";
  const std::string data = pattern(400'000, 6);
  ASSERT_EQ(write_and_die(node, path, data, 50'000), 128 + SIGKILL);
  nlohmann::json drained = node.request({{"command", "drain"}});
  EXPECT_EQ(drained["stored"], false);
  ASSERT_EQ(drained["unstored"].size(), 1u) << drained.dump();
  EXPECT_EQ(drained["unstored"][0]["path"], path);
  EXPECT_EQ(drained["unstored"][0]["errno"], EFBIG);
  EXPECT_EQ(node.status()["errors"][0]["path"], path);
  // The node refuses to lose it.
  EXPECT_EQ(node.request({{"command", "shutdown"}})["stopped"], false);
  ASSERT_EQ(::prlimit(node.pid(), RLIMIT_FSIZE, &before, nullptr), 0);
  EXPECT_EQ(node.request({{"command", "drain"}})["stored"], true);
  EXPECT_TRUE(content_of(path) == data);
  EXPECT_EQ(node.status()["errors"].size(), 0u);
  EXPECT_EQ(node.shut_down(), 0);
}

TEST(WriteBackIdle, CostsNothing) {
  NodeProcess node{NodeOptions{}};
  const std::string path = node.data_directory() + "/idle";
  ASSERT_EQ(write_and_die(node, path, pattern(100'000, 7), 10'000), 128 + SIGKILL);
  ASSERT_EQ(node.request({{"command", "drain"}})["stored"], true);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto cpu_ticks = [&] {
    std::ifstream stream("/proc/" + std::to_string(node.pid()) + "/stat");
    std::string word;
    unsigned long user = 0;
    unsigned long system = 0;
    for (int field = 1; field <= 13 && stream >> word; ++field) {
    }
    stream >> user >> system;
    return user + system;
  };
  const unsigned long before = cpu_ticks();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  // ThreadSanitizer's own thread wakes ten times a second.
#if defined(CAIRN_TSAN)
  constexpr unsigned long kTicksMax = 6;
#else
  constexpr unsigned long kTicksMax = 1;
#endif
  EXPECT_LE(cpu_ticks() - before, kTicksMax);
}

}  // namespace
}  // namespace cairn::testing
