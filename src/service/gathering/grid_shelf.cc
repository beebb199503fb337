// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/grid_shelf.h"

#include "base/check.h"
#include "base/state_directory.h"
#include "service/process/log.h"

namespace cairn::node {

GridShelf::GridShelf(const std::string& directory)
    : path_(directory.empty() ? "" : directory + "/" + std::string(kFileName)) {}

arrays::KnownGrids GridShelf::of_file() const {
  const auto bytes = load_kept(arrays::KnownGrids::kKind, path_);
  Status status = bytes.status();
  if (bytes) {
    auto grids = arrays::KnownGrids::decode(*bytes);
    if (grids) return *std::move(grids);
    status = Status(grids.status().code(), path_ + " " + grids.status().message());
  }
  if (status.code() != StatusCode::kNotFound)
    log::warn("{}; grids of arrays are begun anew", status.message());
  return {};
}

void GridShelf::take_out_once() {
  if (is_taken_out_ || path_.empty()) return;
  is_taken_out_ = true;
  grids_.add_older(of_file());
}

std::optional<arrays::ChunkGrid> GridShelf::find(const arrays::ArrayLooks& looks) {
  const std::lock_guard lock(mutex_);
  take_out_once();
  return grids_.find(looks);
}

void GridShelf::note(const arrays::ArrayLooks& looks, const arrays::ChunkGrid& grid) {
  CAIRN_DCHECK(grid.array() == looks.shape);
  const std::lock_guard lock(mutex_);
  take_out_once();
  if (grids_.note(looks, grid.shape())) has_news_ = true;
}

void GridShelf::put_away() {
  const std::lock_guard lock(mutex_);
  if (!has_news_ || path_.empty()) return;
  has_news_ = false;
  grids_.add_older(of_file());  // what other nodes have put there meanwhile
  const std::string bytes = grids_.encode();
  Status status = save_kept(path_, bytes);
  if (status.code() == StatusCode::kNotFound) {
    const std::string directory = path_.substr(0, path_.rfind('/'));
    const int error = make_directories(directory);
    status = error == 0 ? save_kept(path_, bytes) : Status::from_errno(error, directory);
  }
  if (status) {
    log::info("grids of {} arrays in {}", grids_.size(), path_);
  } else {
    log::warn("{}; grids of arrays are not kept for the next node", status.message());
  }
}

}  // namespace cairn::node
