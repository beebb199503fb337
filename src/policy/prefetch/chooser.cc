// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/chooser.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {
namespace {

constexpr float kNearRate = 0.15F;
constexpr float kFarRate = 0.25F;
// The rate of decay for a silent predictor. Its next forecasts have to be right more often before
// it is believed; this keeps accidental hits in random streams from being followed.
constexpr float kSilenceRate = 0.05F;
constexpr float kScoreOfSilent = 0.1F;
// Reads without which hardly any predictor can have anything to say.
constexpr std::uint32_t kReadsFirst = 8;
constexpr float kScoreOfTold = 0.9F;
// A smaller advantage does not change the chosen predictor: two that take turns fetch more than
// either.
constexpr float kWorthMargin = 0.05F;
// Right as often as not is not good enough, however lucky the last reads were; but what was right
// this often lately has found a new order.
constexpr float kLongScoreMin = 0.58F;
constexpr float kScoreSure = 0.78F;
constexpr std::uint32_t kJudgedMax = 20;
constexpr std::uint32_t kFarJudgedMax = 10;
constexpr float kShareSure = 0.5F;
// The same for one that foresees the next reads only.
constexpr float kLongScoreShort = 0.6F;
// What ends leaves so many reads behind that were foreseen in vain.
constexpr unsigned kLostPerWrong = 6;
// An inherited score lies between these: the predictor is trusted from the first prediction on, but
// not for long when it is wrong; or after the third that is right.
constexpr float kScoreInheritedMin = 0.1F;
constexpr float kScoreInheritedMax = 0.55F;
constexpr std::uint32_t kSpokenMin = 8;
// Most streams are open at the same time: they cannot wait until one has ended.
constexpr std::uint32_t kReadsPerDeposit = 32;
constexpr float kFileRate = 0.5F;
constexpr float kNodeRate = 0.1F;

// The share of the blocks foreseen that were read, as far as a read can tell that is shorter.
float share_read(BlockRun foreseen, BlockRun run) {
  const std::int64_t first = std::max(foreseen.first, run.first);
  const std::int64_t end = std::min(foreseen.end(), run.end());
  if (end <= first) return 0;
  return static_cast<float>(end - first) / static_cast<float>(std::min(foreseen.count, run.count));
}

}  // namespace

Chooser::Chooser(FileKnowledgePtr file, NodeKnowledge& node, PredictorSupply* supply)
    : file_(std::move(file)), node_(node) {
  CAIRN_CHECK(file_ != nullptr);
  const PredictorSources sources{*file_, node_, hints_};
  for (unsigned index = 0; index < kPredictors; ++index) {
    Member& member = members_[index];
    member.predictor = kPredictorMakers[index].make(sources);
    CAIRN_CHECK(member.predictor != nullptr);
    member.is_told = kPredictorMakers[index].is_told;
    member.near_score = member.is_told ? kScoreOfTold : file_->scores[index];
  }
  if (supply == nullptr) return;
  Member& member = members_[kSupplied];
  member.predictor = supply->make(file_blocks_);
  member.near_score = file_->scores[kSupplied];
  ++member_count_;
  CAIRN_CHECK(member.predictor != nullptr && member_count_ == kSupplied + 1);
}

void Chooser::leave_scores() {
  for (unsigned index = 0; index < member_count_; ++index) {
    const Member& member = members_[index];
    if (member.is_told || member.spoken < kSpokenMin) continue;
    const float found = std::clamp(member.score(), kScoreInheritedMin, kScoreInheritedMax);
    file_->scores[index] += kFileRate * (found - file_->scores[index]);
    node_.scores()[index] += kNodeRate * (found - node_.scores()[index]);
  }
}

// When reads do not begin at a block boundary, the first or last block has just been read.
BlockRun Chooser::news_of(BlockRun run) const {
  if (last_.count == 0 || run.count == 1) return run;
  if (run.first == last_.end() - 1) return BlockRun{run.first + 1, run.count - 1};
  if (run.end() - 1 == last_.first) return BlockRun{run.first, run.count - 1};
  return run;
}

void Chooser::judge_near(Member& member, BlockRun run) {
  const Verdict verdict = member.predictor->verdict();
  if (verdict != Verdict::kCompare) {
    member.covered += kNearRate * ((verdict == Verdict::kRight ? 1.0F : 0.0F) - member.covered);
    if (verdict == Verdict::kRight) note_share(member, 1);
    for (unsigned lost = 0; verdict == Verdict::kWrong && lost < kLostPerWrong; ++lost)
      note_share(member, 0);
    return;
  }
  if (member.near_count == 0) {
    if (member.is_told) {
      // The next forecast has nothing to do with the one before.
      member.near_score = kScoreOfTold;
      member.is_far_known = false;
    } else if (reads_ > kReadsFirst && member.near_score > kScoreOfSilent) {
      member.near_score -= kSilenceRate * member.near_score;
    }
    return;
  }
  float share = 0;
  for (unsigned at = 0; at < member.near_count; ++at)
    share = std::max(share, share_read(member.near[at], run));
  note_share(member, share);
}

// The long-term share begins as a mean, so that it means something after a few reads.
void Chooser::note_share(Member& member, float share) {
  member.near_score += kNearRate * (share - member.near_score);
  if (member.judged < kJudgedMax) ++member.judged;
  member.long_score += (share - member.long_score) / static_cast<float>(member.judged);
}

void Chooser::judge_far(Member& member, BlockRun run) {
  // Where several orders take turns nobody knows how soon one goes on.
  if (member.predictor->verdict() != Verdict::kCompare) return;
  for (Sample& sample : member.far) {
    if (sample.run.count == 0) continue;
    // Reads that share a block touch what is foreseen before they reach it.
    const float share = std::max(sample.share, share_read(sample.run, run));
    sample.share = share;
    if (share < kShareSure && reads_ < sample.until) continue;
    if (!member.is_far_known) member.far_score = member.near_score;
    member.is_far_known = true;
    member.far_score += kFarRate * (share - member.far_score);
    if (member.far_judged < kFarJudgedMax) ++member.far_judged;
    member.far_long += (share - member.far_long) / static_cast<float>(member.far_judged);
    sample.run.count = 0;
  }
}

void Chooser::sample_far(Member& member) {
  std::array<BlockRun, kFarReads> next;
  const std::size_t count = member.predictor->predict(next);
  CAIRN_CHECK(count <= next.size());
  const float reach = static_cast<float>(count) / kFarReads;
  member.reach += kFarRate * (reach - member.reach);
  if (count <= kNearReads) return;
  const auto distance = static_cast<std::uint32_t>(count);
  member.far[reads_ / kReadsPerSample % kSamples] = Sample{next[count - 1], reads_ + 2 * distance};
}

void Chooser::observe(BlockRun run) {
  const bool is_known = last_.count != 0 && run.first >= last_.first && run.end() <= last_.end();
  if (is_known) return;
  const BlockRun news = news_of(run);
  last_ = run;
  hints_.observe(run);
  if (++reads_ % kReadsPerDeposit == 0) leave_scores();
  for (unsigned index = 0; index < member_count_; ++index) {
    Member& member = members_[index];
    member.predictor->observe(run);
    judge_near(member, news);
    judge_far(member, news);
    member.near_count = static_cast<unsigned>(member.predictor->predict(member.near));
    if (member.near_count == 0) continue;
    ++member.spoken;
    // They are not all asked at the same read.
    if (member.near_score >= kScoreMin && (reads_ + index) % kReadsPerSample == 0)
      sample_far(member);
  }
}

bool Chooser::is_trusted(const Member& member) {
  if (member.is_told) return member.score() >= kScoreMin;
  if (member.is_short_sighted()) return member.long_score >= kLongScoreShort;
  if (member.score() < kScoreMin) return false;
  return member.long_score >= kLongScoreMin || member.near_score >= kScoreSure;
}

// A hint may have come since the last read.
bool Chooser::has_something(const Member& member) {
  if (!member.is_told) return member.near_count != 0;
  BlockRun next;
  return member.predictor->predict({&next, 1}) != 0;
}

unsigned Chooser::best() const {
  // A declared order says more than that no pattern is to be expected.
  const bool only_told = hints_.advice() == AccessAdvice::kRandom;
  unsigned best = kNobody;
  float worth_to_beat = 0;
  for (unsigned index = 0; index < member_count_; ++index) {
    const Member& member = members_[index];
    if (only_told && !member.is_told) continue;
    if (!is_trusted(member) || member.worth() < worth_to_beat) continue;
    if (!has_something(member)) continue;
    best = index;
    worth_to_beat = member.worth() + kWorthMargin;
  }
  const bool sees_no_end = best != kNobody && members_[best].predictor->sees_no_end();
  return sees_no_end ? who_knows_ends(best) : best;
}

// A predictor that was right in other streams of the file has to show first that it has something
// to say about this one.
unsigned Chooser::who_knows_ends(unsigned otherwise) const {
  for (unsigned index = 0; index < member_count_; ++index) {
    const Member& member = members_[index];
    if (member.spoken < kSpokenMin || !is_trusted(member)) continue;
    if (member.predictor->knows_ends()) return index;
  }
  return otherwise;
}

RepeatedOrder Chooser::repeated() const {
  for (unsigned index = 0; index < member_count_; ++index) {
    RepeatedOrder order = members_[index].predictor->repeated();
    if (!order.runs.empty()) return order;
  }
  return {};
}

Chooser::Choice Chooser::predict(std::span<BlockRun> next) const {
  const unsigned index = best();
  if (index == kNobody) return Choice{};
  const Member& member = members_[index];
  if (member.is_short_sighted() && next.size() > kNearReads) next = next.first(kNearReads);
  const std::size_t count = member.predictor->predict(next);
  return count == 0 ? Choice{} : Choice{count, index};
}

}  // namespace cairn
