// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/array_hints.h"

#include <fnmatch.h>

#include <algorithm>
#include <ranges>

#include "base/size_text.h"
#include "memory/tiers/array_board.h"
#include "policy/arrays/file_array.h"
#include "service/process/log_file.h"

namespace cairn::node {
namespace {

using arrays::ArrayHint;
using arrays::DatasetNews;
using arrays::LeftReason;

static_assert(arrays::kDimensionsMax == GridNumbers::kDimensionsMax);

bool is_of_file(const ArrayHint& hint, const std::string& path) {
  const bool is_path = hint.file.find('/') != std::string::npos;
  const std::string name = is_path ? path : path.substr(path.rfind('/') + 1);
  return hint.file == name || ::fnmatch(hint.file.c_str(), name.c_str(), 0) == 0;
}

// Why a dataset is not read in chunks of the user's; empty: it may be.
std::string fault_of(const DatasetNews& dataset) {
  if (dataset.unfit != LeftReason::kNone)
    return std::string("its reads are left to HDF5: ") + arrays::text_of(dataset.unfit);
  if (dataset.layout == arrays::Layout::kChunked)
    return "its chunks in the file are packed, and cached as they are";
  if (dataset.shape.size() == 0) return "its shape is not known";
  return "";
}

// The same of the sizes of its chunks; they may be smaller at the edges.
std::string fault_of_size(const arrays::ChunkShape& shape, std::uint64_t cell_bytes) {
  std::uint64_t bytes = cell_bytes;
  for (std::size_t at = 0; at < shape.chunk.size(); ++at) {
    const std::uint64_t cells = shape.chunk[at] + shape.ghost.before[at] + shape.ghost.behind[at];
    if (bytes > arrays::kGatheredBytesMax / cells) return "its chunks have more than 64 MiB";
    bytes *= cells;
  }
  if (bytes >= arrays::kGatheredBytesMin) return "";
  return "its chunks have " + format_size(bytes) +
         ": to gather those of less than 64 KiB takes longer than to read them";
}

}  // namespace

std::vector<ArrayHints::Given>::iterator ArrayHints::place_of(std::uint32_t run,
                                                              const ArrayHint& hint) {
  return std::find_if(given_.begin(), given_.end(), [&](const Given& each) {
    return each.run == run && each.hint.file == hint.file && each.hint.dataset == hint.dataset;
  });
}

Status ArrayHints::add_locked(std::uint32_t run, const ArrayHint& hint) {
  CAIRN_RETURN_IF_ERROR(hint.check());
  if (const auto known = place_of(run, hint); known != given_.end()) given_.erase(known);
  CAIRN_RETURN_IF_ERROR(check_room(run));
  given_.push_back({run, hint, false, false, ""});
  return Status::ok();
}

Status ArrayHints::check_room(std::uint32_t run) const {
  const auto others = std::count_if(given_.begin(), given_.end(),
                                    [run](const Given& each) { return each.run == run; });
  if (static_cast<std::size_t>(others) >= kHintsMax) {
    return {StatusCode::kInvalid,
            "there are " + std::to_string(kHintsMax) + " hints for arrays already"};
  }
  return Status::ok();
}

Status ArrayHints::add(std::uint32_t run, const ArrayHint& hint) {
  const std::lock_guard lock(mutex_);
  return add_locked(run, hint);
}

Status ArrayHints::add_of_rule(std::uint32_t run, const ArrayHint& hint) {
  const std::lock_guard lock(mutex_);
  if (place_of(run, hint) != given_.end()) return Status::ok();
  CAIRN_RETURN_IF_ERROR(hint.check());
  CAIRN_RETURN_IF_ERROR(check_room(run));
  given_.insert(given_.begin(), {run, hint, false, false, ""});
  return Status::ok();
}

Status ArrayHints::add_all(std::uint32_t run, const std::vector<ArrayHint>& hints) {
  const std::lock_guard lock(mutex_);
  const std::vector<Given> before = given_;
  for (const ArrayHint& hint : hints) {
    if (const Status status = add_locked(run, hint); !status) {
      given_ = before;
      return {status.code(), "array hint \"" + hint.text + "\": " + status.message()};
    }
  }
  return Status::ok();
}

void ArrayHints::note_refused(std::uint32_t run, const std::string& complaint) {
  const std::lock_guard lock(mutex_);
  Refused& refused = refused_[run];
  if (refused.complaints.size() < kRefusedMax) {
    refused.complaints.push_back(complaint);
  } else {
    ++refused.more;
  }
}

bool ArrayHints::is_empty() const {
  const std::lock_guard lock(mutex_);
  return given_.empty();
}

std::vector<ArrayHints::Said> ArrayHints::snapshot() const {
  const std::lock_guard lock(mutex_);
  std::vector<Said> said;
  for (const Given& given : given_) said.push_back({given.run, given.hint.text});
  return said;
}

void ArrayHints::end_run(std::uint32_t run) {
  if (run == 0) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(given_, [run](const Given& each) { return each.run == run; });
  refused_.erase(run);
}

std::optional<arrays::ChunkGrid> ArrayHints::grid_for(std::uint32_t run, const std::string& path,
                                                      const DatasetNews& dataset) {
  const std::lock_guard lock(mutex_);
  std::optional<arrays::ChunkGrid> found;
  bool is_of_run = false;
  for (Given& given : std::views::reverse(given_)) {
    if ((given.run != run && given.run != 0) || !is_of_file(given.hint, path)) continue;
    given.has_met_file = true;
    if (!dataset.is_named(given.hint.dataset)) continue;
    given.has_met_dataset = true;
    std::string fault = fault_of(dataset);
    if (fault.empty()) {
      const auto grid = arrays::ChunkGrid::of(dataset.shape, given.hint.shape());
      fault = grid ? fault_of_size(grid->shape(), dataset.cell_bytes) : grid.status().message();
      const bool goes_before = !found || (given.run != 0 && !is_of_run);
      if (fault.empty() && goes_before) {
        found = *grid;
        is_of_run = given.run != 0;
      }
    }
    // The node's own hints have no report at the end.
    if (given.run == 0 && given.fault.empty() && !fault.empty())
      log_warning("array hint \"" + given.hint.text + "\" is not used: " + fault);
    given.fault = fault;
  }
  return found;
}

std::vector<std::string> ArrayHints::complaints_of(std::uint32_t run) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> complaints;
  for (const Given& given : given_) {
    if (given.run != run) continue;
    const std::string head = "array hint \"" + given.hint.text + "\" ";
    if (!given.has_met_file) {
      complaints.push_back(head + "matched nothing: no HDF5 file of that name was read");
    } else if (!given.has_met_dataset) {
      complaints.push_back(head + "matched nothing: no dataset " + given.hint.dataset +
                           " of the file was read");
    } else if (!given.fault.empty()) {
      complaints.push_back(head + "is not used: " + given.fault);
    }
  }
  if (const auto refused = refused_.find(run); refused != refused_.end()) {
    const auto& [texts, more] = refused->second;
    complaints.insert(complaints.end(), texts.begin(), texts.end());
    if (more != 0) complaints.push_back(std::to_string(more) + " more array hints are left out");
  }
  return complaints;
}

}  // namespace cairn::node
