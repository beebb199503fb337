// SPDX-License-Identifier: Apache-2.0
// The conformance suite of predictors, run against every member of the table.
#include "policy/prefetch/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/prefetch/testing/prefetch_model.h"

namespace cairn {
namespace {

constexpr BlockRun kUntouched{-77, 77};

// A predictor with all that it borrows.
class Predicting {
 public:
  explicit Predicting(const PredictorMaker& maker)
      : predictor_(maker.make(PredictorSources{*file_, node_, hints_})) {}
  Predictor& operator*() { return *predictor_; }
  Predictor* operator->() { return predictor_.get(); }
  StreamHints& hints() { return hints_; }
  std::vector<BlockRun> foresee(std::size_t count) {
    std::vector<BlockRun> next(count);
    next.resize(predictor_->predict(next));
    return next;
  }

 private:
  NodeKnowledge node_;
  FileKnowledgePtr file_ = node_.file(1);
  StreamHints hints_;
  std::unique_ptr<Predictor> predictor_;
};

// Every kind of pattern by turns, and reads of all lengths.
std::vector<BlockRun> reads_of_all_kinds(std::uint64_t seed, std::size_t count) {
  RandomSource random(seed);
  std::vector<BlockRun> reads;
  BlockRun last{1000, 1};
  std::int64_t delta = 1;
  while (reads.size() < count) {
    switch (random.below(16)) {
      case 0:
        last = BlockRun{random.below(1U << 20), 1 + random.below(40)};
        break;
      case 1:
        delta = static_cast<std::int64_t>(random.below(64)) - 32;
        break;
      case 2:
        if (!reads.empty()) last = reads[random.below(static_cast<std::uint32_t>(reads.size()))];
        break;
      case 3:
        last = BlockRun{static_cast<std::int64_t>(random.below(UINT32_MAX)) << 20, UINT32_MAX};
        break;
      default:
        last.first = std::max<std::int64_t>(0, last.first + delta * last.count);
    }
    reads.push_back(last);
  }
  return reads;
}

class PredictorConformance : public ::testing::TestWithParam<PredictorMaker> {};

TEST_P(PredictorConformance, IsNamedAsInTheTable) {
  EXPECT_STREQ(Predicting(GetParam())->name(), GetParam().name);
}

TEST_P(PredictorConformance, ForeseesNothingOfAStreamWithoutReads) {
  EXPECT_TRUE(Predicting(GetParam()).foresee(8).empty());
}

TEST_P(PredictorConformance, ForeseesNothingAfterOneReadOfAFileNeverReadBefore) {
  Predicting predictor(GetParam());
  predictor->observe(BlockRun{5, 3});
  EXPECT_TRUE(predictor.foresee(8).empty());
}

TEST_P(PredictorConformance, NeverWritesMoreThanItReturns) {
  Predicting predictor(GetParam());
  predictor.hints().advise(AccessAdvice::kSequential);
  for (const BlockRun& read : reads_of_all_kinds(3, 2000)) {
    predictor->observe(read);
    for (const std::size_t room : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
      std::array<BlockRun, 8> next;
      next.fill(kUntouched);
      const std::size_t count = predictor->predict(std::span(next).first(room));
      ASSERT_LE(count, room);
      for (std::size_t at = 0; at < next.size(); ++at) {
        if (at < count) {
          ASSERT_GT(next[at].count, 0u);
        } else {
          ASSERT_EQ(next[at], kUntouched);
        }
      }
    }
  }
}

TEST_P(PredictorConformance, ALongerForesightBeginsWithTheShorterOne) {
  Predicting predictor(GetParam());
  for (const BlockRun& read : reads_of_all_kinds(4, 2000)) {
    predictor->observe(read);
    const std::vector<BlockRun> few = predictor.foresee(3);
    const std::vector<BlockRun> many = predictor.foresee(200);
    ASSERT_EQ(few.size(), std::min<std::size_t>(3, many.size()));
    ASSERT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  }
}

TEST_P(PredictorConformance, SameReadsSameForesight) {
  Predicting first(GetParam());
  Predicting second(GetParam());
  for (const BlockRun& read : reads_of_all_kinds(5, 2000)) {
    first->observe(read);
    second->observe(read);
    // Asking in between changes nothing.
    static_cast<void>(first.foresee(5));
    ASSERT_EQ(first.foresee(8), second.foresee(8));
  }
}

TEST_P(PredictorConformance, KeepsToTheMemoryThatThereIs) {
  KnowledgeOptions options;
  options.file_bytes_max = 20'000;
  NodeKnowledge node(options);
  const FileKnowledgePtr file = node.file(1);
  StreamHints hints;
  const std::unique_ptr<Predictor> predictor =
      GetParam().make(PredictorSources{*file, node, hints});
  RandomSource random(6);
  for (int read = 0; read < 20'000; ++read) {
    predictor->observe(BlockRun{random.below(1U << 24), 1});
    ASSERT_LE(node.bytes_used(), options.file_bytes_max);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PredictorConformance, ::testing::ValuesIn(kPredictorMakers),
                         [](const auto& member) {
                           std::string name = member.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace cairn
