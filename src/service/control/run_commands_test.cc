// SPDX-License-Identifier: Apache-2.0
// A launcher whose service died asks the successor the same again.
#include "service/control/run_commands.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "memory/tiers/testing/test_memory.h"
#include "service/attachment/audit.h"
#include "service/control/testing/test_registries.h"
#include "service/process/unique_fd.h"

namespace cairn::node {
namespace {

using testing::kMiB;

class NoStop final : public StopRequest {
 public:
  void request_stop() override {}
  void request_stop_when_unused() override {}
  void note_run_ended() override {}
};

// A service as far as runs are concerned.
struct RunService {
  RunService(NodeMemory& memory, ClientTable& clients, KeptText* text, ScratchBegin begin,
             const std::string& scratch)
      : registries(memory, clients, text, begin, scratch),
        unserved(memory, registries.flusher, clients.service(), rows),
        audit(
            memory, clients, unserved, [] { return true; },
            [this] { return Audit::Stillness(no_fetches); }),
        reaper(memory, clients, audit, [](const SweepCounts&) {}),
        streams(memory),
        events(memory, streams),
        durability(memory, registries.files, registries.flusher, log),
        drain(memory, registries.files, registries.flusher, durability),
        learning(registries.config, memory, events, nullptr, nullptr),
        status(StatusSources{registries.config, memory, clients, registries.runs,
                             registries.accounts, registries.files, registries.flusher, unserved,
                             reaper, learning, 0, durability}),
        commands(RunKeepers{registries.config, memory, registries.runs, clients,
                            registries.accounts, registries.rules, registries.scratch,
                            registries.flusher, reaper, drain, status, stop, registries.kept}) {
    registries.flusher.start();
    reaper.start();
  }
  ~RunService() {
    reaper.stop();
    registries.flusher.stop();
  }

  TestRegistries registries;
  KeptMemory rows = std::move(KeptMemory::create().value());
  UnservedFiles unserved;
  std::shared_mutex no_fetches;
  Audit audit;
  Reaper reaper;
  StreamTable streams;
  EventReader events;
  NodeLog log;
  NodeDurability durability;
  DrainRequest drain;
  LearningReport learning;
  StatusReport status;
  NoStop stop;
  RunCommands commands;
};

class RunCommandsTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSession = 5;

  RunCommandsTest() {
    std::string path = ::testing::TempDir() + "cairn-run-commands-XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    root_ = path;
    std::filesystem::create_directory(root_ + "/target");
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    service_end_.reset(ends[0]);
    launcher_end_.reset(ends[1]);
    descriptors_.measure();
    service_ = make(ScratchBegin::kEmpty);
  }
  ~RunCommandsTest() override {
    service_.reset();
    dead_.reset();
    std::filesystem::remove_all(root_);
  }
  std::unique_ptr<RunService> make(ScratchBegin begin) {
    return std::make_unique<RunService>(memory_, clients_, &text_, begin, root_ + "/scratch");
  }
  void succeed() {
    dead_ = std::move(service_);
    service_ = make(ScratchBegin::kAsLeft);
    ASSERT_TRUE(service_->registries.kept.restore().is_ok());
  }
  // The last line that the request `number` is answered with; 0: it has none.
  Json request(std::uint64_t number, Json fields) {
    fields["run"] = "71";
    ControlPeer peer(service_end_.get(), number);
    EXPECT_TRUE(service_->commands.on_request(peer, kSession, fields["command"], fields));
    Json reply;
    do {
      std::string line;
      char byte = 0;
      while (byte != '\n' && ::recv(launcher_end_.get(), &byte, 1, 0) == 1) line += byte;
      reply = Json::parse(line, nullptr, false);
    } while (reply.value("kind", "") == "progress");
    return reply;
  }
  Json begin(std::uint64_t number) {
    return request(number, {{"command", "run-begin"},
                            {"scratch", {root_ + "/target"}},
                            {"reserve", {{{"tier", "ram"}, {"bytes", 4 * kMiB}}}}});
  }
  Json end(std::uint64_t number) { return request(number, {{"command", "run-end"}}); }
  std::size_t runs() const { return service_->registries.runs.all().size(); }
  std::uint32_t reserved_slabs() const { return memory_.accounts().tiers[0].reserved_slabs(); }

  std::string root_;
  UniqueFd service_end_;
  UniqueFd launcher_end_;
  NodeMemory memory_ = testing::make_memory(testing::memory_only(64 * kMiB));
  DescriptorBudget descriptors_{memory_};
  KeptMemory kept_memory_ = std::move(KeptMemory::create().value());
  ClientTable clients_{memory_, descriptors_, kept_memory_};
  KeptText text_{kept_memory_};
  std::unique_ptr<RunService> dead_;
  std::unique_ptr<RunService> service_;
};

TEST_F(RunCommandsTest, ARunThatHasBegunIsNotBegunTwice) {
  const Json first = begin(1);
  ASSERT_EQ(first.value("kind", ""), "done");
  succeed();
  EXPECT_EQ(begin(1), first) << "the same directory, too";
  EXPECT_EQ(runs(), 1u);
  EXPECT_EQ(begin(2).value("kind", ""), "error") << "another request for a run of the same name";
}

TEST_F(RunCommandsTest, ARunThatHasEndedIsAnsweredAgain) {
  begin(1);
  const Json first = end(2);
  ASSERT_EQ(first.value("stored", false), true);
  succeed();
  EXPECT_EQ(runs(), 0u);
  EXPECT_EQ(end(2), first);
  EXPECT_EQ(end(3).value("kind", ""), "error") << "a request that nobody has answered";
}

TEST_F(RunCommandsTest, ARunGoesOnAndEnds) {
  begin(1);
  succeed();
  EXPECT_EQ(end(2).value("stored", false), true);
  EXPECT_EQ(runs(), 0u);
  EXPECT_EQ(reserved_slabs(), 0u);
}

TEST_F(RunCommandsTest, ARunWithoutItsLauncherEnds) {
  const std::string source = begin(1)["scratch"][0]["source"];
  succeed();
  service_->commands.end_absent({kSession});
  EXPECT_EQ(runs(), 1u) << "its connection is there";
  service_->commands.end_absent({kSession + 1});
  EXPECT_EQ(runs(), 0u);
  EXPECT_EQ(reserved_slabs(), 0u);
  EXPECT_FALSE(std::filesystem::exists(source));
  succeed();
  EXPECT_EQ(runs(), 0u) << "for every later service, too";
}

TEST_F(RunCommandsTest, RequestsWithoutNumbersAreNotRepetitions) {
  EXPECT_EQ(begin(0).value("kind", ""), "done");
  EXPECT_EQ(begin(0).value("kind", ""), "error");
  EXPECT_EQ(end(0).value("kind", ""), "done");
  EXPECT_EQ(end(0).value("kind", ""), "error");
}

}  // namespace
}  // namespace cairn::node
