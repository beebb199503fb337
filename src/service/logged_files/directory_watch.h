// SPDX-License-Identifier: Apache-2.0
// What happens to the names of some directories, as the kernel tells it (inotify): every change of
// a name by a process of this machine is there before the call that made it returns, whether or
// not the process is one of the node's.
//
// Thread safety: any thread. Ownership: owns the kernel's queue; borrows the directories.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"

namespace cairn::node {

enum class NameDeed : std::uint8_t { kMade, kRemoved, kMovedAway, kMovedHere, kBeyondWords };

struct NameEvent {
  NameDeed deed = NameDeed::kBeyondWords;
  std::uint32_t move = 0;  // the same for both halves of a rename
  std::string name;
};

class DirectoryWatch {
 public:
  DirectoryWatch();
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  // From here on the directory's changes are kept. Returns: its number, or -errno.
  int add(int directory);
  void remove(int number);
  // What has happened since the last call, in order. A change that has no words here, or events
  // that were lost, are kBeyondWords: without a name when any name may have changed.
  std::vector<NameEvent> take(int number);

 private:
  void read_all();
  void lose_all();

  int queue_ = -1;
  std::mutex mutex_;
  std::map<int, std::vector<NameEvent>> waiting_;
};

}  // namespace cairn::node
