// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/store_names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/system_call.h"

namespace cairn::node {
namespace {

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U
#endif

std::uint64_t unique_mount_of(int fd) {
  struct ::statx file;
  // The server of a network file system is left alone.
  if (sys::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID_UNIQUE, &file) < 0)
    return 0;
  return (file.stx_mask & STATX_MNT_ID_UNIQUE) != 0 ? file.stx_mnt_id : 0;
}

std::string mountinfo_text() {
  const std::ifstream file("/proc/self/mountinfo");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The fields of a line of mountinfo (proc_pid_mountinfo(5)): ID, parent, major:minor, root, place,
// options, any number of tags, "-", type, source, options.
constexpr std::size_t kNumberField = 2;
constexpr std::size_t kRootField = 3;

std::string number_of(StoreId id) {
  return std::to_string(major(raw(id))) + ":" + std::to_string(minor(raw(id)));
}

std::vector<std::string> fields_of(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> fields;
  for (std::string word; words >> word;) fields.push_back(word);
  return fields;
}

// NFS shows the source with the directory that is mounted of it.
std::string without_root(const std::string& source, const std::string& root) {
  const bool has_root = root != "/" && source.size() > root.size() && source.ends_with(root);
  return has_root ? source.substr(0, source.size() - root.size()) : source;
}

}  // namespace

bool is_mounted(const std::string& mountinfo, StoreId id) {
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() > kNumberField && fields[kNumberField] == number_of(id)) return true;
  }
  return false;
}

MountSource mount_source_of(const std::string& mountinfo, StoreId id) {
  const std::string number = number_of(id);
  MountSource found;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> fields = fields_of(line);
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() <= kRootField || fields[kNumberField] != number || fields.end() - dash < 3)
      continue;
    MountSource here{dash[1], dash[2]};
    if (here.type.starts_with("nfs")) here.source = without_root(here.source, fields[kRootField]);
    if (!found.type.empty() && !(found == here)) return MountSource();
    found = std::move(here);
  }
  return found;
}

StoreNames::Kernel StoreNames::real_kernel() {
  return {unique_mount_of, read_store_facts, mountinfo_text, [] { return monotonic_ns(); }};
}

bool StoreNames::Entry::has(std::uint64_t mount) const {
  return std::find(mounts.begin(), mounts.end(), mount) != mounts.end();
}

bool StoreNames::is_current(const Entry& entry, std::uint64_t mount) const {
  if (entry.looked_ns == 0) return false;
  return mount != 0 ? entry.has(mount) : kernel_.now_ns() - entry.looked_ns < kTrustedNs;
}

StoreName StoreNames::name_of(StoreId id, int fd) {
  const std::uint64_t mount = kernel_.mount_of(fd);
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[id];
  if (!is_current(entry, mount)) {
    look(id, fd, &entry);
    if (mount != 0) entry.mounts[entry.next_mount++ % kMountsMax] = mount;
  }
  return entry.name;
}

void StoreNames::look(StoreId id, int fd, Entry* entry) {
  ++looks_;
  Entry seen;
  seen.looked_ns = kernel_.now_ns();
  if (kernel_.read_facts(fd, &seen.facts) == 0 && seen.facts.id == id) {
    if (is_named_by_source(seen.facts)) seen.source = mount_source_of(kernel_.read_mountinfo(), id);
    seen.name = cairn::name_of(seen.facts, seen.source.type, seen.source.source);
    if (is_taken(id, seen)) seen.name = StoreName::kUnknown;
  }
  // Another mount of the same file system: those that are known stay so. A copy that has lost its
  // name does not get it back while the number is its own.
  if (entry->looked_ns != 0 && entry->facts == seen.facts && entry->source == seen.source) {
    entry->looked_ns = seen.looked_ns;
    return;
  }
  *entry = std::move(seen);
}

// A network file system that is mounted twice is one store, under either number. A file system that
// was mounted before under another number has left its name there.
bool StoreNames::is_taken(StoreId id, const Entry& entry) {
  if (entry.name == StoreName::kUnknown || is_named_by_source(entry.facts)) return false;
  const auto other = std::find_if(entries_.begin(), entries_.end(), [&](const auto& candidate) {
    return candidate.first != id && candidate.second.name == entry.name;
  });
  if (other == entries_.end()) return false;
  if (is_mounted(kernel_.read_mountinfo(), other->first)) return true;
  entries_.erase(other);
  return false;
}

std::uint64_t StoreNames::looks() const {
  const std::lock_guard lock(mutex_);
  return looks_;
}

}  // namespace cairn::node
