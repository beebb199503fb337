// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/slab_ahead.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::arrays {

namespace {

// Reads that go elsewhere before nothing is brought in any more.
constexpr std::uint64_t kMissesMax = 8;

}  // namespace

SlabAhead::SlabAhead(const Coordinates& array, std::size_t cell_bytes)
    : array_(array), cell_bytes_(cell_bytes), bytes_(*whole(array).cells() * cell_bytes) {
  CAIRN_CHECK(bytes_ > 0);
}

ByteRun SlabAhead::slab_of(const Box& box) const {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  for (std::size_t at = 0; at < box.dimensions(); ++at) {
    first = first * array_[at] + box.first[at];
    last = last * array_[at] + box.end(at) - 1;
  }
  return {first * cell_bytes_, (last + 1 - first) * cell_bytes_};
}

// Rows that are a block apart or more have a block each.
std::uint64_t SlabAhead::touched_by(const Hyperslab& selection) const {
  std::uint64_t rows = 1;
  std::uint64_t row_bytes = cell_bytes_;
  const auto repeat = [&](std::uint64_t times, std::uint64_t step) {
    const bool is_close = step <= row_bytes + kBlockBytes;
    if (is_close)
      row_bytes += (times - 1) * step;
    else
      rows *= times;
  };
  std::uint64_t span = cell_bytes_;  // from a cell to the next one in that dimension
  for (std::size_t at = array_.size(); at-- > 0;) {
    repeat(selection.block[at], span);
    repeat(selection.count[at], span * selection.stride[at]);
    span *= array_[at];
  }
  return rows * std::max(row_bytes, kBlockBytes);
}

// Reads of what was brought in earn more; others, less.
void SlabAhead::judge(const ByteRun& slab) {
  if (asked_.bytes == 0) return;
  const bool is_inside = slab.offset >= asked_.offset && slab.offset <= asked_.end();
  if (is_inside) {
    factor_ = std::min(std::max<std::uint64_t>(factor_, 1) * 2, kFactorMax);
    misses_ = 0;
  } else if (++misses_ >= kMissesMax) {
    factor_ = 0;
  } else {
    factor_ = std::max<std::uint64_t>(factor_ / 2, 1);
  }
}

ByteRun SlabAhead::needed_now(const Box& box) const {
  const Coordinates one(box.dimensions(), 1);
  const ByteRun slab = slab_of(box);
  const bool is_in_pieces = *box.cells() * cell_bytes_ < slab.bytes;
  return is_in_pieces ? needed_now(Hyperslab{box.first, box.count, one, box.count}) : ByteRun{};
}

ByteRun SlabAhead::needed_now(const Hyperslab& selection) const {
  const ByteRun slab = slab_of(selection.bounds());
  CAIRN_CHECK(slab.end() <= bytes_);
  const bool is_worth_it = slab.bytes >= kSlabBytesMin && touched_by(selection) >= slab.bytes / 2;
  return is_worth_it ? slab : ByteRun{};
}

std::optional<ByteRun> SlabAhead::observe(const Box& box) {
  CAIRN_CHECK(whole(array_).contains(box) && !box.is_empty());
  const Coordinates one(box.dimensions(), 1);
  return bring(slab_of(box), touched_by({box.first, box.count, one, box.count}));
}

// Its slab is its own: nobody else is expected to read what lies in wide gaps.
std::optional<ByteRun> SlabAhead::observe(const Hyperslab& selection) {
  const Box bounds = selection.bounds();
  CAIRN_CHECK(whole(array_).contains(bounds));
  const ByteRun slab = slab_of(bounds);
  const std::uint64_t touched = touched_by(selection);
  if (touched < slab.bytes / kFactorMax) return std::nullopt;
  return bring(slab, touched);
}

std::optional<ByteRun> SlabAhead::bring(const ByteRun& slab, std::uint64_t touched) {
  judge(slab);
  touched_ += touched;
  if (factor_ == 0) return std::nullopt;
  // A program that has jumped begins anew there.
  if (asked_.bytes == 0 || slab.offset < asked_.offset || slab.offset > asked_.end())
    asked_ = {slab.offset, 0};
  const std::uint64_t most = factor_ * touched_;
  const std::uint64_t credit = most > brought_ ? most - brought_ : 0;
  const std::uint64_t wanted_end = std::min(bytes_, slab.end() + slab.bytes);
  if (wanted_end <= asked_.end() || credit < kBlockBytes) return std::nullopt;
  const ByteRun run{asked_.end(), std::min(credit, wanted_end - asked_.end())};
  asked_.bytes += run.bytes;
  brought_ += run.bytes;
  CAIRN_CHECK(run.bytes > 0 && asked_.end() <= bytes_);
  return run;
}

}  // namespace cairn::arrays
