// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/trace_replay.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <unordered_map>

#include "cli/trace/page_references.h"
#include "policy/replacement/compared_experts.h"

namespace cairn::cli {
namespace {

// The pages that a trace uses, numbered from 0 on, in the order of their use.
class References {
 public:
  explicit References(std::uint64_t page_bytes) : keys_(page_bytes) {}

  void add(const TraceEvent& event) {
    keys_.add(event, [this](std::uint64_t key) {
      const auto number = static_cast<std::uint32_t>(numbers_.size());
      pages_.push_back(numbers_.try_emplace(key, number).first->second);
    });
  }
  const std::vector<std::uint32_t>& pages() const { return pages_; }
  std::size_t footprint() const { return numbers_.size(); }

 private:
  PageReferences keys_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::vector<std::uint32_t> pages_;
};

// The page whose next use is farthest away leaves.
std::uint64_t misses_of_min(const std::vector<std::uint32_t>& pages, std::size_t footprint,
                            std::uint64_t capacity) {
  const std::size_t never = pages.size();
  std::vector<std::size_t> next(pages.size(), never);
  std::vector<std::size_t> seen(footprint, never);
  for (std::size_t at = pages.size(); at-- > 0;) {
    next[at] = seen[pages[at]];
    seen[pages[at]] = at;
  }
  std::priority_queue<std::pair<std::size_t, std::uint32_t>> farthest;
  std::vector<std::size_t> next_use(footprint, never);
  std::vector<bool> is_held(footprint, false);
  std::uint64_t held = 0;
  std::uint64_t misses = 0;
  for (std::size_t at = 0; at < pages.size(); ++at) {
    const std::uint32_t page = pages[at];
    next_use[page] = next[at];
    farthest.emplace(next[at], page);
    if (is_held[page]) continue;
    ++misses;
    is_held[page] = true;
    if (++held <= capacity) continue;
    // Entries that a later use has made old are passed over.
    while (!is_held[farthest.top().second] ||
           next_use[farthest.top().second] != farthest.top().first) {
      farthest.pop();
    }
    is_held[farthest.top().second] = false;
    farthest.pop();
    --held;
  }
  return misses;
}

}  // namespace

Result<ReplayTable> replay(TraceSource& trace, const ReplayOptions& options) {
  References references(options.page_bytes);
  TraceEvent event;
  while (trace.next(&event)) references.add(event);
  if (!trace.status()) return trace.status();
  ReplayTable table;
  table.references = references.pages().size();
  table.footprint_pages = references.footprint();
  for (const double percent : options.percents) {
    ReplayRow row;
    const double pages = static_cast<double>(table.footprint_pages) * percent / 100;
    row.pages = std::max<std::uint64_t>(static_cast<std::uint64_t>(std::llround(pages)), 1);
    row.misses_min = misses_of_min(references.pages(), references.footprint(), row.pages);
    for (const std::string& name : options.experts) {
      const auto expert = make_compared_expert(name, static_cast<std::uint32_t>(row.pages));
      if (expert == nullptr)
        return Status(StatusCode::kInvalid, "no expert is called \"" + name + "\"");
      std::uint64_t misses = 0;
      for (const std::uint32_t page : references.pages())
        misses += expert->reference(PageId{page}) ? 0 : 1;
      row.misses.push_back(misses);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace cairn::cli
