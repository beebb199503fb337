// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/array_watch.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::node {

using arrays::Box;

ArrayWatch::ArrayWatch(const arrays::FileArray& array) : array_(array), learner_(array.shape) {
  CAIRN_CHECK(array.cell_bytes != 0);
}

void ArrayWatch::expect(const arrays::ChunkGrid& grid) {
  CAIRN_DCHECK(grid.array() == array_.shape);
  if (is_shown_ || (grid_ && grid_->shape() == grid.shape())) return;
  grid_.reset();  // no chunk of it is anywhere
  change_grid(grid);
}

void ArrayWatch::note_shown() {
  if (!is_shown_) is_newly_shown_ = true;
  is_shown_ = true;
}

void ArrayWatch::change_grid(const arrays::ChunkGrid& grid) {
  if (grid_) earlier_.push_front(*grid_);
  std::erase_if(earlier_,
                [&](const arrays::ChunkGrid& each) { return each.shape() == grid.shape(); });
  if (earlier_.size() > kEarlierGridsMax) earlier_.pop_back();
  CAIRN_DCHECK(earlier_.size() <= kEarlierGridsMax);
  grid_ = grid;
  ahead_.emplace(grid_->chunks());
  is_new_grid_ = true;
}

// The chunk whose cells and ghost zone are that very box, if there is one: the one that the first
// cell behind the ghost zone before it is in. At the lower edge there is no such zone.
static std::optional<std::uint64_t> chunk_of(const arrays::ChunkGrid& grid, const Box& box) {
  arrays::Coordinates cell = box.first;
  for (std::size_t at = 0; at < cell.size(); ++at) {
    if (cell[at] != 0) cell[at] += grid.shape().ghost.before[at];
    if (cell[at] >= box.end(at)) return std::nullopt;
  }
  const std::uint64_t number = grid.number_of(cell);
  return grid.with_ghost(number) == box ? std::optional(number) : std::nullopt;
}

std::vector<Box> ArrayWatch::observe(std::uint64_t reader, const Box& box) {
  CAIRN_DCHECK(arrays::whole(array_.shape).contains(box));
  reads_.push_back({reader, box});
  if (reads_.size() > kReadsKept) reads_.pop_front();
  note_read(box);
  const bool is_other_grid = learn(box);
  std::vector<Box> next;
  if (!grid_) return next;
  if (!is_other_grid) {
    expect_after(reads_.back(), &next);
    return next;
  }
  for (const Read& read : reads_) expect_after(read, &next);
  std::erase_if(next, [this](const Box& expected) {
    return std::any_of(reads_.begin(), reads_.end(),
                       [&](const Read& read) { return read.box == expected; });
  });
  return next;
}

void ArrayWatch::note_read(const Box& box) {
  if (is_read_again_) return;
  is_read_again_ = !known_.insert(arrays::region_name(array_, box)[0]).second;
  if (is_read_again_ || known_.size() > kBoxesKnown) known_.clear();
}

void ArrayWatch::expect_after(const Read& read, std::vector<Box>* next) {
  const auto chunk = chunk_of(*grid_, read.box);
  if (!chunk) return;
  for (const std::uint64_t number : ahead_->observe(read.reader, *chunk))
    next->push_back(grid_->with_ghost(number));
}

// A box that fits what was learned teaches nothing.
bool ArrayWatch::learn(const Box& box) {
  if (grid_ && chunk_of(*grid_, box)) {
    note_shown();
    return false;
  }
  learner_.observe(box);
  const auto shape = learner_.shape();
  if (!shape || (grid_ && grid_->shape() == *shape)) return false;
  auto grid = arrays::ChunkGrid::of(array_.shape, *shape);
  if (!grid) return false;
  change_grid(*grid);
  is_shown_ = false;
  note_shown();
  return true;
}

}  // namespace cairn::node
