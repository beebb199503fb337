// SPDX-License-Identifier: Apache-2.0
// The names of the stores that the node has files of (memory/backing/store_name.h), each asked for
// once per mount.
//
// A number of the kernel (StoreId) may become another file system's. So an entry holds for the
// mounts that it was made for: their numbers are never used again (STATX_MNT_ID_UNIQUE, Linux 6.8).
// A file that comes over another mount of the same file system makes the entry look again. Before
// Linux 6.8 an entry holds for a second.
//
// When two file systems that are both mounted have one name, one is a copy of the other: the later
// one gets none.
//
// Thread safety: all functions from any thread. Ownership: keeps no descriptor, so nothing stays
// mounted for it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "memory/backing/store_name.h"

namespace cairn::node {

// Type and source of a mounted file system; empty when they are not known, or its mounts differ.
struct MountSource {
  std::string type;
  std::string source;

  friend bool operator==(const MountSource&, const MountSource&) = default;
};
// Both from the text of /proc/self/mountinfo.
bool is_mounted(const std::string& mountinfo, StoreId id);
MountSource mount_source_of(const std::string& mountinfo, StoreId id);

class StoreNames {
 public:
  // What the kernel says; a test says it itself.
  struct Kernel {
    // Number of the mount that a descriptor came over, never used again. 0: the kernel has none.
    std::function<std::uint64_t(int fd)> mount_of;
    std::function<int(int fd, StoreFacts* facts)> read_facts;
    std::function<std::string()> read_mountinfo;
    std::function<std::int64_t()> now_ns;
  };
  static Kernel real_kernel();

  explicit StoreNames(Kernel kernel = real_kernel()) : kernel_(std::move(kernel)) {}

  // The name of the file system of an open file; `id` is its number.
  StoreName name_of(StoreId id, int fd);
  // How often the kernel was asked for more than the number of a mount.
  std::uint64_t looks() const;

 private:
  static constexpr std::size_t kMountsMax = 16;
  static constexpr std::int64_t kTrustedNs = 1'000'000'000;

  struct Entry {
    StoreFacts facts;
    MountSource source;
    StoreName name = StoreName::kUnknown;
    std::array<std::uint64_t, kMountsMax> mounts{};
    std::size_t next_mount = 0;
    std::int64_t looked_ns = 0;

    bool has(std::uint64_t mount) const;
  };
  bool is_current(const Entry& entry, std::uint64_t mount) const;
  void look(StoreId id, int fd, Entry* entry);
  bool is_taken(StoreId id, const Entry& entry);

  const Kernel kernel_;
  mutable std::mutex mutex_;
  std::map<StoreId, Entry> entries_;
  std::uint64_t looks_ = 0;
};

}  // namespace cairn::node
