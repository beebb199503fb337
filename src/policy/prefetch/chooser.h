// SPDX-License-Identifier: Apache-2.0
// Decides which predictor a stream is read ahead by. All predictors of the table follow the stream,
// and one that a plugin brings. The chooser compares each forecast with the reads that came, and
// follows the predictor that was right most often lately. When none is right often enough, it
// follows none.
//
// A predictor's score is the mean of two running shares of blocks that were read after it had said
// so: among its next two reads, and among reads as far ahead as kFarReads. The stream fetches what
// the predictor sees far ahead; the near share shows sooner that a pattern has ended. The far share
// is only updated while the near one is good, so that a stream without any pattern costs little.
// Where it is low, the predictor foresees the next two reads only. A share over more reads keeps
// one from being followed that is right as often as not, whatever the last reads were. If two are
// right equally often, the one that sees further is worth more, because a late forecast does not
// help. One that sees no end of what the reads follow gives way to one that knows how far such
// things go here, even where that foresees nothing. A new stream begins with the findings of other
// streams of the file, or of the node.
//
// Bounds: some 10 KiB per stream beside the knowledge. Thread safety: none. Ownership: shares the
// file's knowledge; borrows the node's and the supply, which outlive it.
#pragma once

#include "policy/prefetch/predictor_supply.h"
#include "policy/prefetch/predictors.h"

namespace cairn {

class Chooser {
 public:
  // A prediction that is expected to be right less often is not made.
  static constexpr float kScoreMin = 0.4F;
  static constexpr unsigned kFarReads = 8;
  // The number of the predictor that stands in no table: behind all that do.
  static constexpr unsigned kSupplied = kPredictors;
  static constexpr unsigned kNobody = kPredictors + 1;

  // `supply`: of one predictor more; may be null.
  Chooser(FileKnowledgePtr file, NodeKnowledge& node, PredictorSupply* supply = nullptr);
  ~Chooser() { leave_scores(); }
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;

  StreamHints& hints() { return hints_; }
  // How long the file is now, for those who ask.
  void set_file_blocks(std::int64_t blocks) { file_blocks_ = blocks; }

  // The program reads this. Within what it has just read it is no step.
  void observe(BlockRun run);

  struct Choice {
    std::size_t count = 0;         // of the runs that are filled
    unsigned predictor = kNobody;  // an index of kPredictorMakers, or kSupplied
  };
  Choice predict(std::span<BlockRun> next) const;
  // The repeated order of the first predictor that knows one.
  RepeatedOrder repeated() const;

  // How often the predictor was right, of 1.
  float score(unsigned predictor) const { return members_[predictor].score(); }

 private:
  static constexpr unsigned kNearReads = 2;
  static constexpr float kFarScoreMin = 0.5F;
  static constexpr float kWorthShort = 0.6F;
  static constexpr float kLongScoreFirst = 0.6F;
  static constexpr std::uint32_t kJudgedFirst = 3;  // what that is worth
  static constexpr unsigned kSamples = 4;
  static constexpr unsigned kReadsPerSample = 4;
  // Something that was foreseen, and until which read it may come.
  struct Sample {
    BlockRun run{0, 0};  // no blocks: none
    std::uint32_t until = 0;
    float share = 0;  // of it that was read at once so far
  };
  struct Member {
    std::unique_ptr<Predictor> predictor;
    std::array<BlockRun, kNearReads> near{};
    std::array<Sample, kSamples> far{};
    unsigned near_count = 0;
    std::uint32_t spoken = 0;  // times that it foresaw anything
    float near_score = kScoreFirst;
    float far_score = kScoreFirst;
    float long_score = kLongScoreFirst;
    std::uint32_t judged = kJudgedFirst;
    float far_long = 1;  // the far score over more reads
    std::uint32_t far_judged = 1;
    float covered = 1;  // of all reads, those that it has anything to say about
    float reach = 1;    // how much of kFarReads it sees
    bool is_far_known = false;
    bool is_told = false;

    float score() const { return is_far_known ? (near_score + far_score) / 2 : near_score; }
    // It is right about the next reads, but not further ahead.
    bool is_short_sighted() const { return is_far_known && !is_told && far_long < kFarScoreMin; }
    float worth() const {
      if (is_short_sighted()) return near_score * kWorthShort * (1 + covered) / 2;
      return score() * (2 + reach) / 3 * (1 + covered) / 2;
    }
  };

  static_assert(kNobody <= kPredictorsMax, "each has its place among the scores");

  BlockRun news_of(BlockRun run) const;
  void leave_scores();
  static bool is_trusted(const Member& member);
  static void note_share(Member& member, float share);
  void judge_near(Member& member, BlockRun run);
  void judge_far(Member& member, BlockRun run);
  void sample_far(Member& member);
  static bool has_something(const Member& member);
  unsigned best() const;
  // Returns: `otherwise` when nobody does.
  unsigned who_knows_ends(unsigned otherwise) const;

  const FileKnowledgePtr file_;
  NodeKnowledge& node_;
  StreamHints hints_;
  std::int64_t file_blocks_ = 0;
  std::array<Member, kNobody> members_;
  unsigned member_count_ = kPredictors;
  BlockRun last_{-1, 0};
  std::uint32_t reads_ = 0;
};

}  // namespace cairn
