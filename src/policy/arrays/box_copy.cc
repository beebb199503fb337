// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/box_copy.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace cairn::arrays {

namespace {

// One loop of the copy: so many turns, and how many bytes a turn goes on on either side.
struct Loop {
  std::uint64_t turns = 1;
  std::uint64_t from_step = 0;
  std::uint64_t to_step = 0;
};

// The loops around runs of bytes that follow each other on both sides.
struct Plan {
  std::size_t run_bytes = 0;
  std::size_t loops = 0;
  std::array<Loop, kDimensionsMax> loop;  // NOLINT: only the first `loops` mean anything
  std::uint64_t from_at = 0;
  std::uint64_t to_at = 0;
};

// From the innermost loop outwards.
Plan plan_of(const Box& what, std::size_t cell_bytes, const Box& from, const Box& to) {
  Plan plan;
  plan.run_bytes = cell_bytes;
  std::uint64_t from_step = cell_bytes;
  std::uint64_t to_step = cell_bytes;
  for (std::size_t at = what.dimensions(); at-- > 0;) {
    plan.from_at += (what.first[at] - from.first[at]) * from_step;
    plan.to_at += (what.first[at] - to.first[at]) * to_step;
    const bool goes_on =
        plan.loops == 0 && plan.run_bytes == from_step && plan.run_bytes == to_step;
    if (goes_on) {
      plan.run_bytes *= what.count[at];
    } else if (what.count[at] > 1) {
      plan.loop[plan.loops++] = {what.count[at], from_step, to_step};
    }
    from_step *= from.count[at];
    to_step *= to.count[at];
  }
  return plan;
}

template <std::size_t RunBytes>
void copy_row(const Loop& loop, const std::byte* from, std::byte* to) {
  for (std::uint64_t turn = 0; turn < loop.turns; ++turn) {
    std::memcpy(to, from, RunBytes);
    from += loop.from_step;
    to += loop.to_step;
  }
}

// Cells one by one, as a column is read, are copied without a call for each.
void copy_runs(std::size_t run_bytes, const Loop& loop, const std::byte* from, std::byte* to) {
  switch (run_bytes) {
    case 1:
      return copy_row<1>(loop, from, to);
    case 2:
      return copy_row<2>(loop, from, to);
    case 4:
      return copy_row<4>(loop, from, to);
    case 8:
      return copy_row<8>(loop, from, to);
    case 16:
      return copy_row<16>(loop, from, to);
    default:
      break;
  }
  for (std::uint64_t turn = 0; turn < loop.turns; ++turn)
    std::memcpy(to + turn * loop.to_step, from + turn * loop.from_step, run_bytes);
}

// Calls visit(from, to) at each turn of the loops outside the innermost one, which count up like an
// odometer.
template <typename Visit>
void for_each_turn(const Plan& plan, Visit&& visit) {
  std::uint64_t from = plan.from_at;
  std::uint64_t to = plan.to_at;
  std::array<std::uint64_t, kDimensionsMax> turn{};
  while (true) {
    visit(from, to);
    std::size_t at = 1;
    for (; at < plan.loops; ++at) {
      const Loop& loop = plan.loop[at];
      from += loop.from_step;
      to += loop.to_step;
      if (++turn[at] < loop.turns) break;
      from -= loop.turns * loop.from_step;
      to -= loop.turns * loop.to_step;
      turn[at] = 0;
    }
    if (at >= plan.loops) return;
  }
}

Loop innermost(const Plan& plan) { return plan.loops == 0 ? Loop{} : plan.loop[0]; }

}  // namespace

void copy_cells(const Box& what, std::size_t cell_bytes, const ReadableCells& from,
                const WritableCells& to) {
  CAIRN_CHECK(from.box.contains(what) && to.box.contains(what));
  if (what.is_empty()) return;
  const Plan plan = plan_of(what, cell_bytes, from.box, to.box);
  for_each_turn(plan, [&](std::uint64_t from_at, std::uint64_t to_at) {
    copy_runs(plan.run_bytes, innermost(plan), from.bytes + from_at, to.bytes + to_at);
  });
}

std::vector<CopyRun> runs_between(const Box& what, std::size_t cell_bytes, const Box& from,
                                  const Box& to) {
  CAIRN_CHECK(from.contains(what) && to.contains(what));
  std::vector<CopyRun> runs;
  if (what.is_empty()) return runs;
  const Plan plan = plan_of(what, cell_bytes, from, to);
  const Loop loop = innermost(plan);
  for_each_turn(plan, [&](std::uint64_t from_at, std::uint64_t to_at) {
    for (std::uint64_t turn = 0; turn < loop.turns; ++turn) {
      runs.push_back(
          {from_at + turn * loop.from_step, to_at + turn * loop.to_step, plan.run_bytes});
    }
  });
  return runs;
}

}  // namespace cairn::arrays
