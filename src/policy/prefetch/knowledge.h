// SPDX-License-Identifier: Apache-2.0
// The knowledge that streams share, so that none begins from nothing. For each file: the order in
// which it was read, which segment follows which, and how far ahead it has to be read. For the
// node: which distance between reads follows which. For both: which predictors were right.
//
// Bounds: the node's tables are of fixed size. All files together take no more than
// Options::file_bytes_max, and at most files_max files have any knowledge. The files opened longest
// ago are forgotten first, those in use never; their knowledge goes to the shelf, if there is one.
//
// Thread safety: none. Ownership: a FileKnowledge is shared by the streams of the file and must not
// outlive its node's.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <unordered_map>

#include "policy/prefetch/access_history.h"
#include "policy/prefetch/delta_paths.h"
#include "policy/prefetch/lookahead.h"
#include "policy/prefetch/segment_chain.h"

namespace cairn {

// How often each predictor of the table in policy/prefetch/predictors.h was right.
inline constexpr unsigned kPredictorsMax = 16;
using PredictorScores = std::array<float, kPredictorsMax>;
// The score of a predictor of which nothing is known: a stream's first right prediction makes it
// trusted.
inline constexpr float kScoreFirst = 0.3F;

struct KnowledgeOptions {
  std::size_t file_bytes_max = std::size_t{64} << 20;
  std::uint32_t files_max = 4096;
  std::uint32_t history_entries_max = 1U << 17;
  std::uint32_t segments_max = 1U << 13;
};

struct FileKnowledge {
  FileKnowledge(KnowledgeBudget& budget, const KnowledgeOptions& options,
                const PredictorScores& first_scores)
      : history(budget, options.history_entries_max),
        segments(budget, options.segments_max),
        scores(first_scores) {}

  AccessHistory history;
  SegmentChain segments;
  PredictorScores scores;
  CommonLookahead lookahead;
};
using FileKnowledgePtr = std::shared_ptr<FileKnowledge>;

// Where what is known of files is kept for the next node.
class KnowledgeShelf {
 public:
  virtual ~KnowledgeShelf() = default;
  // Fills in what is kept of the file that the node's knowledge calls so; else leaves it alone.
  virtual void fetch(std::uint64_t key, FileKnowledge* file) = 0;
  virtual void put(std::uint64_t key, const FileKnowledge& file) = 0;
};

class NodeKnowledge {
 public:
  explicit NodeKnowledge(const KnowledgeOptions& options = {});

  // Before the first file; may be null, outlives this.
  void set_shelf(KnowledgeShelf* shelf) { shelf_ = shelf; }
  // All that is known of files goes to the shelf; it stays known.
  void put_away() const;

  // The knowledge of the file that the caller calls so; begins with the first call.
  FileKnowledgePtr file(std::uint64_t key);
  // Its contents are others now.
  void forget(std::uint64_t key);

  DeltaPaths& paths() { return paths_; }
  PredictorScores& scores() { return scores_; }
  std::size_t files() const { return files_.size(); }
  std::size_t bytes_used() const { return budget_.bytes_used(); }

 private:
  struct Entry {
    std::uint64_t key = 0;
    FileKnowledgePtr file;
  };
  void make_room();

  const KnowledgeOptions options_;
  KnowledgeBudget budget_;
  DeltaPaths paths_;
  PredictorScores scores_;
  KnowledgeShelf* shelf_ = nullptr;
  std::list<Entry> files_;  // the last opened first
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> by_key_;
};

}  // namespace cairn
