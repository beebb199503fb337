// SPDX-License-Identifier: Apache-2.0
#include "service/learning/knowledge_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "base/kept_file.h"
#include "base/state_directory.h"
#include "policy/prefetch/knowledge_file.h"

namespace cairn::node {
namespace {

constexpr std::string_view kSuffix = ".order";
constexpr std::size_t kKeyDigits = 16;

std::optional<std::uint64_t> key_in(std::string_view name) {
  if (name.size() != kKeyDigits + kSuffix.size() || !name.ends_with(kSuffix)) return std::nullopt;
  const std::string digits(name.substr(0, kKeyDigits));
  if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
  return std::strtoull(digits.c_str(), nullptr, 16);
}

// Calls visit(name, directory's descriptor) for each entry. Returns: whether it can be read.
template <typename Visit>
bool for_each_entry(const std::string& directory, Visit&& visit) {
  DIR* const listing = ::opendir(directory.c_str());
  if (listing == nullptr) return false;
  while (const dirent* entry = ::readdir(listing)) visit(entry->d_name, ::dirfd(listing));
  ::closedir(listing);
  return true;
}

struct Kept {
  std::string name;
  std::uint64_t bytes = 0;
  timespec used{};
};

bool was_used_later(const Kept& one, const Kept& other) {
  if (one.used.tv_sec != other.used.tv_sec) return one.used.tv_sec > other.used.tv_sec;
  return one.used.tv_nsec > other.used.tv_nsec;
}

// Changes with the history: that only grows, unless it begins anew, as what agrees with it is not
// recorded again.
std::uint64_t state_of(const AccessHistory& history) {
  return std::uint64_t{history.generation()} << 32 | (history.entries().size() + 1);
}

}  // namespace

std::string KnowledgeDirectory::file_name(std::uint64_t key) {
  std::array<char, kKeyDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(key));
  return digits.data() + std::string(kSuffix);
}

void KnowledgeDirectory::list() {
  is_listed_ = true;
  for_each_entry(directory_, [this](const char* name, int) {
    if (const auto key = key_in(name)) kept_[*key] = 0;
  });
}

void KnowledgeDirectory::fetch(std::uint64_t key, FileKnowledge* file) {
  if (!is_listed_) list();
  const auto known = kept_.find(key);
  if (known == kept_.end()) return;
  const std::string path = path_of(key);
  const Status status = load_knowledge(path, key, file);
  if (status) {
    known->second = state_of(file->history);
    ++counts_.fetched;
    return;
  }
  kept_.erase(known);
  // Another node may have removed it since.
  if (status.code() != StatusCode::kNotFound) complain_(status.message() + "; begun anew");
}

void KnowledgeDirectory::put(std::uint64_t key, const FileKnowledge& file) {
  if (is_broken_ || file.history.entries().size() < kStretchesKeptMin) return;
  const std::string path = path_of(key);
  std::uint64_t& state = kept_[key];
  // Used again, that is all.
  if (state == state_of(file.history) && ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0)
    return;
  Status status = save_knowledge(path, key, file);
  if (status.code() == StatusCode::kNotFound) {
    const int error = make_directories(directory_);
    status = error == 0 ? save_knowledge(path, key, file) : Status::from_errno(error, directory_);
  }
  if (status) {
    state = state_of(file.history);
    ++counts_.put;
    return;
  }
  is_broken_ = true;
  complain_(status.message() + "; orders of reads are not kept for the next node");
}

void KnowledgeDirectory::tidy() {
  std::vector<Kept> all;
  for_each_entry(directory_, [&](std::string name, int listing) {
    struct stat status{};
    std::string_view whole = name;
    if (whole.ends_with(kKeptBeside)) whole.remove_suffix(kKeptBeside.size());
    if (!key_in(whole) || ::fstatat(listing, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return;
    all.push_back({std::move(name), static_cast<std::uint64_t>(status.st_size), status.st_mtim});
  });
  std::sort(all.begin(), all.end(), was_used_later);
  std::uint64_t bytes = 0;
  for (std::size_t at = 0; at < all.size(); ++at) {
    bytes += all[at].bytes;
    if (at < bounds_.files_max && bytes <= bounds_.bytes_max) continue;
    (void)::unlink((directory_ + "/" + all[at].name).c_str());
  }
}

}  // namespace cairn::node
