// SPDX-License-Identifier: Apache-2.0
// The interface of predictors, which say what a program will read next.
//
// A predictor follows one stream, the reads through one open description, in blocks. It is pure: no
// clock, no lock, no I/O. It borrows the knowledge that several streams share
// (policy/prefetch/knowledge.h). To add one, write `<name>.h` beside this header and put it into
// the table in policy/prefetch/predictors.h; the conformance suite (predictor_test.cc) then runs
// against it.
//
// Thread safety: none; one thread for a predictor and all that it borrows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn {

// Blocks that one call reads: `first`, `first + 1`, ... of a file.
struct BlockRun {
  std::int64_t first = 0;
  std::uint32_t count = 1;

  std::int64_t end() const { return first + count; }
  bool operator==(const BlockRun&) const = default;
};

// An order of reads that a program comes back to, and how far in it one of its streams is.
struct RepeatedOrder {
  std::vector<BlockRun> runs;  // none: no such order is known
  std::size_t at = 0;          // of `runs`, that the stream is in
};

// How the last read stands to what a predictor had foreseen.
enum class Verdict : std::uint8_t {
  kCompare,  // what was foreseen says it, read by read
  kNone,     // nothing was foreseen that it could have been
  kRight,
  kWrong  // something foreseen is not going to be read
};

class Predictor {
 public:
  Predictor() = default;
  virtual ~Predictor() = default;
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  virtual const char* name() const = 0;
  // The program has asked for this. Requires: count > 0, first >= 0.
  virtual void observe(BlockRun run) = 0;
  // What it will ask for next, in order. Returns how many of `next` are filled: fewer when no more
  // is known, 0 when nothing is. Runs may lie behind the end of the file, or before its beginning:
  // the caller leaves those out.
  virtual std::size_t predict(std::span<BlockRun> next) const = 0;
  // For a predictor of several orders at once, of which any may go on next: about the read observed
  // last.
  virtual Verdict verdict() const { return Verdict::kCompare; }
  // Whether it foresees that what it follows goes on for ever.
  virtual bool sees_no_end() const { return false; }
  // Whether it is a finding that it foresees so little, or nothing: what it follows is likely to
  // end there.
  virtual bool knows_ends() const { return false; }
  // The whole order that the stream goes through once more, when it has been right for a while.
  virtual RepeatedOrder repeated() const { return {}; }
};

}  // namespace cairn
