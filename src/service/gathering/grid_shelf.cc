// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/grid_shelf.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"
#include "base/state_directory.h"
#include "service/process/log.h"

namespace cairn::node {
namespace {

// Holds the directory as long as it lives: nodes that end together write one after the other.
class Turn {
 public:
  explicit Turn(const std::string& directory)
      : descriptor_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    constexpr int kTries = 100;
    constexpr timespec kPause{0, 10'000'000};
    for (int tries = 0; descriptor_ >= 0 && tries < kTries && !has_come_; ++tries) {
      // A file system without such locks has nobody to wait for.
      has_come_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
      if (!has_come_) ::nanosleep(&kPause, nullptr);
    }
  }
  ~Turn() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool has_come() const { return has_come_; }

 private:
  const int descriptor_;
  bool has_come_ = false;
};

}  // namespace

Status GridShelf::read(arrays::KnownGrids* grids) const {
  const std::string path = directory_ + "/" + std::string(kFileName);
  const auto bytes = load_kept(arrays::KnownGrids::kKind, path);
  if (!bytes) return bytes.status();
  auto found = arrays::KnownGrids::decode(*bytes);
  if (!found) return {found.status().code(), path + " " + found.status().message()};
  *grids = *std::move(found);
  return Status::ok();
}

void GridShelf::take_out() {
  if (directory_.empty()) return;
  arrays::KnownGrids grids;
  const Status status = read(&grids);
  if (!status && status.code() != StatusCode::kNotFound)
    log::warn("{}; grids of arrays are begun anew", status.message());
  const std::lock_guard lock(mutex_);
  taken_out_ = std::move(grids);
}

std::optional<arrays::ChunkGrid> GridShelf::find(const arrays::ArrayLooks& looks) const {
  const std::lock_guard lock(mutex_);
  auto found = noted_.find(looks);
  return found ? found : taken_out_.find(looks);
}

void GridShelf::note(const arrays::ArrayLooks& looks, const arrays::ChunkGrid& grid) {
  CAIRN_DCHECK(grid.array() == looks.shape);
  const std::lock_guard lock(mutex_);
  noted_.note(looks, grid.shape());
  has_news_ = true;
}

// What other nodes have put there meanwhile stays. What nobody can read is another version's, or
// the store's trouble; what is damaged goes.
Status GridShelf::write() const {
  if (const int error = make_directories(directory_); error != 0)
    return Status::from_errno(error, directory_);
  const Turn turn(directory_);
  if (!turn.has_come()) return {StatusCode::kUnavailable, directory_ + " is in use by others"};
  arrays::KnownGrids all = noted_;
  arrays::KnownGrids there;
  const Status status = read(&there);
  const bool may_be_replaced =
      status || status.code() == StatusCode::kNotFound || status.code() == StatusCode::kInvalid;
  if (!may_be_replaced) return status;
  all.add_older(there);
  return save_kept(directory_ + "/" + std::string(kFileName), all.encode());
}

void GridShelf::put_away() {
  const std::lock_guard lock(mutex_);
  if (!has_news_ || directory_.empty()) return;
  has_news_ = false;
  const Status status = write();
  if (status) {
    log::info("grids of {} arrays are in {}", noted_.size(), directory_);
  } else {
    log::warn("{}; grids of arrays are not kept for the next node", status.message());
  }
}

}  // namespace cairn::node
