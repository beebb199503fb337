// SPDX-License-Identifier: Apache-2.0
// What one service keeps, another one has, over the same memory.
#include "service/control/kept_state.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "memory/tiers/testing/test_memory.h"
#include "service/control/kept_json.h"
#include "service/control/testing/test_registries.h"

namespace cairn::node {
namespace {

namespace fs = std::filesystem;
using testing::kMiB;

class KeptStateTest : public ::testing::Test {
 protected:
  KeptStateTest() {
    std::string path = ::testing::TempDir() + "cairn-kept-test-XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    root_ = path;
    fs::create_directory(root_ + "/target");
    descriptors_.measure();
    first_ = make(ScratchBegin::kEmpty);
  }
  ~KeptStateTest() override {
    next_.reset();
    first_.reset();
    fs::remove_all(root_);
  }
  std::unique_ptr<TestRegistries> make(ScratchBegin begin) {
    return std::make_unique<TestRegistries>(memory_, clients_, &text_, begin, root_ + "/scratch");
  }
  static FileRule reserving(const char* pattern, std::uint64_t mebibytes) {
    FileRule rule;
    rule.pattern = pattern;
    rule.reserve = Reservation{"", mebibytes * kMiB};
    return rule;
  }
  // As RunCommands does it.
  void begin_run(std::uint64_t session, const char* id) const {
    const node::Run run{id, {"app", "\xff"}, "/dir", 17, 4096};
    const std::uint32_t number = run.number();
    ASSERT_TRUE(first_->runs.begin(run));
    ASSERT_TRUE(first_->accounts.begin_run(number, 300, {Reservation{"ram", 4 * kMiB}}).is_ok());
    first_->flusher.set_weight(number, 300);
    ASSERT_TRUE(first_->rules.begin_run(number, {reserving("/d/*", 2)}).is_ok());
    ASSERT_TRUE(first_->scratch.add(number, root_ + "/target").is_ok());
    first_->kept.sessions().begin(session, {run, 300}, {3, {{"kind", "done"}, {"n", id}}});
    first_->kept.save();
  }
  Status succeed() {
    next_ = make(ScratchBegin::kAsLeft);
    return next_->kept.restore();
  }
  std::uint32_t reserved_mebibytes() const {
    return memory_.accounts().tiers[0].reserved_slabs() * kBlockBytes / kMiB;
  }

  std::string root_;
  NodeMemory memory_ = testing::make_memory(testing::memory_only(64 * kMiB));
  DescriptorBudget descriptors_{memory_};
  KeptMemory kept_memory_ = std::move(KeptMemory::create().value());
  ClientTable clients_{memory_, descriptors_, kept_memory_};
  KeptText text_{kept_memory_};
  std::unique_ptr<TestRegistries> first_;
  std::unique_ptr<TestRegistries> next_;
};

TEST(KeptJson, ADamagedTextIsDiscardedWhateverItSays) {
  // An array of 2^64 - 1 values, and what a fuzzer found.
  const std::string longest = "\x9b\xff\xff\xff\xff\xff\xff\xff\xff";
  for (const std::string& text : {std::string(), std::string("\x94"), longest, "\x94" + longest})
    EXPECT_TRUE(unpacked(text).is_discarded());
}

TEST_F(KeptStateTest, RunsGoOn) {
  begin_run(5, "71");
  ASSERT_TRUE(succeed().is_ok());
  const auto run = next_->runs.find("71");
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->command_line, (std::vector<std::string>{"app", "\xff"}));
  EXPECT_EQ(run->directory, "/dir");
  EXPECT_EQ(run->began_ns, 17);
  EXPECT_EQ(run->flushed_bytes_before, 4096u);
  EXPECT_EQ(next_->accounts.holdings_of(71).at(0).reserved, 4 * kMiB);
  EXPECT_EQ(next_->flusher.share_of(71).weight, 300u);
  EXPECT_EQ(next_->rules.snapshot().of_runs.at(71).at(0).pattern, "/d/*");
  EXPECT_EQ(next_->scratch.places_of(71).size(), 1u);
  EXPECT_EQ(next_->kept.sessions().close(5), "71");
}

TEST_F(KeptStateTest, AnswersAreGivenAgain) {
  begin_run(5, "71");
  first_->kept.sessions().end(5, "71", {4, {{"kind", "done"}, {"stored", true}}});
  first_->kept.save();
  ASSERT_TRUE(succeed().is_ok());
  RunSessions& sessions = next_->kept.sessions();
  EXPECT_EQ(sessions.answer_to(5, 3)->at("n"), "71");
  EXPECT_EQ(sessions.answer_to(5, 4)->at("stored"), true);
  EXPECT_EQ(sessions.answer_to(5, 5), std::nullopt);
  EXPECT_EQ(sessions.answer_to(6, 4), std::nullopt) << "another connection";
  EXPECT_EQ(sessions.close(5), "") << "it stands for no run any more";
  EXPECT_EQ(sessions.answer_to(5, 4), std::nullopt);
}

TEST_F(KeptStateTest, WhatIsLeftOfARunThatHasEndedGoes) {
  begin_run(5, "71");
  ASSERT_EQ(reserved_mebibytes(), 6u);
  const std::string source = first_->scratch.places_of(71).at(0).source;
  // The service dies before it forgets the run.
  first_->kept.sessions().end(5, "71", {4, Json::object()});
  first_->kept.save();
  ASSERT_TRUE(succeed().is_ok());
  EXPECT_TRUE(next_->runs.is_empty());
  EXPECT_EQ(reserved_mebibytes(), 0u);
  EXPECT_EQ(next_->rules.size(), 0u);
  EXPECT_FALSE(fs::exists(source));
}

TEST_F(KeptStateTest, ARunThatHadNotBegunIsUndone) {
  begin_run(5, "71");
  ASSERT_TRUE(first_->runs.begin(node::Run{"72", {}, "/", 0, 0}));
  ASSERT_TRUE(first_->accounts.begin_run(72, 100, {Reservation{"ram", 8 * kMiB}}).is_ok());
  first_->kept.save();  // for another change
  ASSERT_TRUE(succeed().is_ok());
  EXPECT_EQ(next_->runs.all().size(), 1u);
  EXPECT_EQ(reserved_mebibytes(), 6u);
  EXPECT_EQ(memory_.accounts().of_run(72), AccountId::kNobody);
}

TEST_F(KeptStateTest, WhatTheNodeSaysHoldsOn) {
  ASSERT_EQ(first_->placement.number_of("max-bandwidth").value(), 0);
  FileRule policy;
  policy.pattern = "/p/*";
  policy.policy = "round-robin";
  ASSERT_TRUE(first_->rules.load({reserving("/schema/*", 3)}).is_ok());
  ASSERT_TRUE(first_->rules.set(policy).is_ok());
  ASSERT_TRUE(first_->scratch.add(0, root_ + "/target").is_ok());
  first_->kept.save();
  ASSERT_TRUE(succeed().is_ok());
  EXPECT_EQ(next_->rules.size(), 2u);
  EXPECT_EQ(next_->rules.snapshot().schema.at(0).pattern, "/schema/*");
  EXPECT_EQ(reserved_mebibytes(), 3u);
  EXPECT_EQ(next_->placement.name_of(1), "round-robin");
  EXPECT_EQ(next_->scratch.places_of(9).size(), 1u);
}

TEST_F(KeptStateTest, HintsAboutArraysHoldOn) {
  begin_run(5, "71");
  const auto hint = [](const std::string& text) { return *arrays::parse_array_hint(text); };
  ASSERT_TRUE(first_->hints.add(71, hint("/d/a.h5:/x chunk=[8,4] ghost=[1,2]")));
  ASSERT_TRUE(first_->hints.add(0, hint("b.h5:/y chunk=[3]")));
  ASSERT_TRUE(first_->hints.add(72, hint("c.h5:/z chunk=[3]")));
  first_->kept.save();
  ASSERT_TRUE(succeed().is_ok());
  const auto said = next_->hints.snapshot();
  ASSERT_EQ(said.size(), 2u) << "run 72 has ended";
  EXPECT_EQ(said[0].run, 71u);
  EXPECT_EQ(said[0].text, "/d/a.h5:/x chunk=[8,4] ghost=[1,2]");
  EXPECT_EQ(said[1].run, 0u);
}

TEST_F(KeptStateTest, NothingIsKeptBeforeAnythingIsSaved) {
  EXPECT_FALSE(first_->kept.has_heritage());
  first_->kept.save();
  EXPECT_TRUE(make(ScratchBegin::kAsLeft)->kept.has_heritage());
}

TEST_F(KeptStateTest, DamageIsRefused) {
  begin_run(5, "71");
  const std::string good = text_.get();
  const auto expect_refused = [&](const char* what, const std::function<void(Json*)>& damage) {
    Json kept = unpacked(good);
    damage(&kept);
    ASSERT_TRUE(text_.put(packed(kept)));
    const Status refused = succeed();
    EXPECT_FALSE(refused.is_ok()) << what;
    EXPECT_NE(refused.message().find(what), std::string::npos) << refused.message();
  };
  const auto damage_session = [](Json* kept, const std::function<void(Json*)>& damage) {
    Json session = unpacked((*kept)["sessions"][0].get<std::string>());
    damage(&session);
    (*kept)["sessions"][0] = packed(session);
  };
  expect_refused("another version", [](Json* kept) { (*kept)["version"] = 2; });
  expect_refused("rules", [](Json* kept) { kept->erase("rules"); });
  expect_refused("no object", [](Json* kept) { (*kept)["sessions"][0] = "x"; });
  expect_refused("there twice",
                 [](Json* kept) { (*kept)["sessions"].push_back((*kept)["sessions"][0]); });
  expect_refused("actual type is number", [](Json* kept) { (*kept)["sessions"][0] = 7; });
  expect_refused("a run is named", [&](Json* kept) {
    damage_session(kept, [](Json* session) { (*session)["run"]["id"] = "no number"; });
  });
  expect_refused("weight", [&](Json* kept) {
    damage_session(kept, [](Json* session) { session->erase("weight"); });
  });
  expect_refused("account 255",
                 [](Json* kept) { (*kept)["accounts"]["of_runs"][0]["account"] = 300; });
  expect_refused("tier number",
                 [](Json* kept) { (*kept)["accounts"]["of_runs"][0]["reserved"][0]["tier"] = 99; });
  expect_refused("cannot stand for",
                 [](Json* kept) { (*kept)["scratch"]["places"][0]["source"] = "/etc"; });
  expect_refused("a rule needs a pattern", [](Json* kept) {
    (*kept)["rules"]["of_runs"][0]["rules"] = Json::array({Json::object()});
  });
  ASSERT_TRUE(text_.put(good.substr(0, good.size() / 2)));
  EXPECT_FALSE(succeed().is_ok());
  ASSERT_TRUE(text_.put(good));
  EXPECT_TRUE(succeed().is_ok());
}

}  // namespace
}  // namespace cairn::node
