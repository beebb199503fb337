// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/found_file.h"

#include <dirent.h>
#include <fcntl.h>

#include <memory>

#include "service/write_back/store_file.h"

namespace cairn::node {
namespace {

constexpr int kPlaceFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
constexpr int kEntriesMax = 1 << 20;

UniqueFd checked(UniqueFd found, const ObjectKey& key) {
  StoreStatus status;
  return found && is_file_of(found.get(), key, &status) ? std::move(found) : UniqueFd();
}

UniqueFd find_in_folder(const ObjectKey& key, const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (entries == nullptr) return {};
  for (int looks = 0; looks < kEntriesMax; ++looks) {
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    if (entry->d_ino != key.id.inode) continue;
    const int fd = ::openat(::dirfd(entries.get()), entry->d_name, kPlaceFlags);
    if (UniqueFd found = checked(UniqueFd(fd), key)) return found;
  }
  return {};
}

}  // namespace

UniqueFd find_file(const ObjectKey& key, const std::string& path) {
  if (!path.starts_with('/')) return {};
  if (UniqueFd found = checked(UniqueFd(::open(path.c_str(), kPlaceFlags)), key)) return found;
  const std::string folder = path.substr(0, path.rfind('/'));
  return find_in_folder(key, folder.empty() ? "/" : folder);
}

}  // namespace cairn::node
