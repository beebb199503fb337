// SPDX-License-Identifier: Apache-2.0
// The descriptors that a successor finds open, sorted by what they are for. It looks before it
// opens anything itself, closes what only the dead service could use (events, timers, rings,
// directories), and hands the rest out once each.
//
//   labelled                  by its kind
//   a regular file, writable  a backing file that a client handed over: its identity says which
//   a regular file, readable  was read from, or waits for fsync
//   a connected socket        was accepted and says nothing of itself yet
//
// Thread safety: one thread. Ownership: closes what nobody has taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "service/keeping/kept_descriptors.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

struct InheritedFd {
  UniqueFd fd;
  KeptLabel label;
};

class Inheritance {
 public:
  // Sorts all descriptors that are open now.
  explicit Inheritance(KeptDescriptors& labels);

  ~Inheritance();
  Inheritance(const Inheritance&) = delete;
  Inheritance& operator=(const Inheritance&) = delete;

  // The one of this kind (and number); none when there is none.
  UniqueFd take(KeptKind kind, std::uint64_t number = 0);
  // All of this kind.
  std::vector<InheritedFd> take_all(KeptKind kind);
  std::vector<UniqueFd> take_writable_files() { return std::move(writable_files_); }
  std::vector<UniqueFd> take_readable_files() { return std::move(readable_files_); }
  // Accepted at the socket of this path.
  std::vector<UniqueFd> take_connections(const std::string& path);
  // For a caller that tells its sockets from others itself: the numbers of all, and one of them,
  // which is the caller's from now on.
  std::vector<int> sockets() const;
  void give(int fd);

 private:
  void sort(UniqueFd fd);

  KeptDescriptors& labels_;
  std::vector<InheritedFd> labelled_;
  std::vector<UniqueFd> writable_files_;
  std::vector<UniqueFd> readable_files_;
  std::vector<UniqueFd> connections_;
};

}  // namespace cairn::node
