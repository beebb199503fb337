// SPDX-License-Identifier: Apache-2.0
#include "service/treatment/scratch_space.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "base/check.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn::node {
namespace {

namespace fs = std::filesystem;

bool is_name_of(const std::string& path, const struct stat& file) {
  struct stat named{};
  return ::lstat(path.c_str(), &named) == 0 && named.st_ino == file.st_ino &&
         named.st_dev == file.st_dev;
}

// A name of the file below `directory`; empty when there is none. `*entries_left` bounds how long
// that takes.
std::string name_below(const fs::path& directory, const struct stat& file, unsigned* entries_left) {
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(directory, options, error), end;
       !error && at != end && *entries_left > 0; at.increment(error), --*entries_left) {
    if (is_name_of(at->path().string(), file)) return at->path().string();
  }
  return {};
}

// A file that was made without a name (O_TMPFILE), or whose first name is gone, is known to the
// kernel by no name that exists. What it got later mostly lies nearby.
std::string other_name(const std::string& known, const struct stat& file) {
  constexpr unsigned kEntriesMax = 20000;
  unsigned entries_left = kEntriesMax;
  const fs::path directory = fs::path(known).parent_path();
  if (directory.empty()) return {};
  std::string name = name_below(directory, file, &entries_left);
  return name.empty() ? name_below(directory.parent_path(), file, &entries_left) : name;
}

}  // namespace

FileRule scratch_rule(const std::string& directory) {
  FileRule rule;
  // fnmatch(3) reads some characters as more than themselves.
  for (const char letter : directory) {
    if (std::string_view("*?[]\\{}()").find(letter) != std::string_view::npos) rule.pattern += '\\';
    rule.pattern += letter;
  }
  rule.pattern += "/*";
  rule.mode = BufferingMode::kScratch;
  rule.name = "scratch";
  rule.source = "--scratch " + directory;
  return rule;
}

ScratchSpace::ScratchSpace(const NodeMemory& memory, Owner self, std::string directory,
                           ScratchBegin begin)
    : memory_(memory), self_(self), directory_(std::move(directory)) {
  CAIRN_CHECK(!directory_.empty());
  if (begin == ScratchBegin::kAsLeft) return;
  // Left by a node of this name that was killed; nobody has it, because this node holds the name
  // now.
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

ScratchSpace::~ScratchSpace() {
  for (const Place& place : places_) remove(place);
  std::error_code ignored;
  if (!places_.empty() || made_ != 0) fs::remove(directory_, ignored);
}

Result<ScratchSpace::Place> ScratchSpace::add(std::uint32_t run, const std::string& target) {
  const std::lock_guard lock(mutex_);
  for (const Place& place : places_) {
    if (place.target == target && (place.run == 0 || place.run == run)) return place;
  }
  struct stat status{};
  if (::stat(target.c_str(), &status) != 0)
    return Status::from_errno(errno, "scratch directory " + target);
  if (!S_ISDIR(status.st_mode))
    return Status(StatusCode::kInvalid, "scratch directory " + target + " is not a directory");
  Place place{run, target, directory_ + "/" + std::to_string(++made_)};
  if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST)
    return Status::from_errno(errno, "cannot create " + directory_);
  if (::mkdir(place.source.c_str(), 0700) != 0)
    return Status::from_errno(errno, "cannot create " + place.source);
  // As the program finds the directory that lies below it.
  if (::chmod(place.source.c_str(), status.st_mode & 07777) != 0)
    return Status::from_errno(errno, "cannot set the mode of " + place.source);
  places_.push_back(place);
  return place;
}

ScratchSpace::Snapshot ScratchSpace::snapshot() const {
  const std::lock_guard lock(mutex_);
  return {made_, places_};
}

// Places end in removals of whole trees, so a wrong one would do harm.
Status ScratchSpace::check(const Snapshot& kept) const {
  std::set<std::string> sources;
  for (const Place& place : kept.places) {
    const bool is_below = place.source.starts_with(directory_ + "/");
    const std::string name = is_below ? place.source.substr(directory_.size() + 1) : "";
    const bool is_number =
        !name.empty() && name.size() < 10 &&
        std::all_of(
            name.begin(), name.end(), [](char letter) { return letter >= '0' && letter <= '9'; });
    if (is_number && std::stoul(name) <= kept.made && !place.target.empty() &&
        sources.insert(place.source).second)
      continue;
    return {StatusCode::kInvalid, "the scratch directories that were kept are damaged: \"" +
                                      place.source + "\" cannot stand for \"" + place.target +
                                      "\""};
  }
  return Status::ok();
}

Status ScratchSpace::restore(const Snapshot& kept) {
  CAIRN_RETURN_IF_ERROR(check(kept));
  std::set<std::string> known;
  {
    const std::lock_guard lock(mutex_);
    CAIRN_CHECK(places_.empty() && made_ == 0);
    made_ = kept.made;
    places_ = kept.places;
    for (const Place& place : places_) known.insert(place.source);
  }
  std::error_code error;
  std::vector<std::string> strangers;
  for (fs::directory_iterator at(directory_, error), end; !error && at != end;
       at.increment(error)) {
    if (!known.contains(at->path().string())) strangers.push_back(at->path().string());
  }
  for (const std::string& stranger : strangers) remove(Place{0, "", stranger});
  return Status::ok();
}

std::vector<ScratchSpace::Place> ScratchSpace::places_of(std::uint32_t run) const {
  const std::lock_guard lock(mutex_);
  std::vector<Place> places;
  std::copy_if(places_.begin(), places_.end(), std::back_inserter(places),
               [run](const Place& place) { return place.run == 0 || place.run == run; });
  return places;
}

void ScratchSpace::end_run(std::uint32_t run) {
  if (run == 0) return;
  std::vector<Place> ended;
  {
    const std::lock_guard lock(mutex_);
    const auto is_its = [run](const Place& place) { return place.run == run; };
    std::copy_if(places_.begin(), places_.end(), std::back_inserter(ended), is_its);
    std::erase_if(places_, is_its);
  }
  for (const Place& place : ended) remove(place);
}

void ScratchSpace::remove(const Place& place) const {
  // All below it goes.
  CAIRN_CHECK(place.source.starts_with(directory_ + "/"));
  std::error_code error;
  for (fs::recursive_directory_iterator at(place.source, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_regular_file(error) && !at->is_symlink(error)) forget_file(at->path().string());
  }
  fs::remove_all(place.source, error);
}

void ScratchSpace::forget_strays(const StoreFiles& files) const {
  for (const StoreFilePtr& file : files.snapshot()) {
    const Object& object = memory_.objects().at(file->object);
    if (object.handling().mode != BufferingMode::kScratch) continue;
    // It may have several names, and all go.
    constexpr unsigned kNamesMax = 1000;
    for (unsigned names = 0; names < kNamesMax; ++names) {
      std::string path = path_of(file->fd.get());
      struct stat opened{};
      if (path.empty() && ::fstat(file->fd.get(), &opened) == 0 && opened.st_nlink > 0)
        path = other_name(path_of_descriptor(file->fd.get()), opened);
      if (path.empty() || !forget_file(path)) break;
    }
  }
}

std::string ScratchSpace::path_of(int fd) const {
  struct stat opened{};
  if (::fstat(fd, &opened) != 0) return {};
  const std::string known = path_of_descriptor(fd);
  // The name may be another file's by now.
  const auto is_it = [&opened](const std::string& path) { return is_name_of(path, opened); };
  if (is_it(known)) return known;
  const std::lock_guard lock(mutex_);
  for (const Place& place : places_) {
    const bool is_seen = known.starts_with(place.target + "/");
    const std::string path = place.source + (is_seen ? known.substr(place.target.size()) : known);
    if (is_it(path)) return path;
  }
  return {};
}

bool ScratchSpace::forget_file(const std::string& path) const {
  Actor actor;
  actor.memory = &memory_;
  actor.self = self_;
  actor.counters = &memory_.slot(self_.slot()).shards[0];
  StoreStatus status;
  if (store_status_at(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, &status) < 0) return false;
  if (::unlink(path.c_str()) != 0) return false;
  if (status.links > 1) return true;
  const ObjectIndex index = memory_.objects().find(status.key);
  if (index != ObjectIndex::kNone) unlink_object(actor, index);
  actor.drop_leases();
  return true;
}

}  // namespace cairn::node
