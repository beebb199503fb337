// SPDX-License-Identifier: Apache-2.0
// What reading each file has cost while a run is sampled: bytes that the store, or a tier below
// RAM, had to give while a program waited.
//
// It hears what learners hear, which is lossy and has only a part of the plain hits. Clients tell
// each miss, so the order of the files is right unless events were lost.
//
// Thread safety: on_accesses() by the event reader, all else from any thread. Units: bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/learning/access_observer.h"

namespace cairn::node {

struct FileCost {
  std::string path;
  ObjectIndex object = ObjectIndex::kNone;
  std::uint64_t miss_bytes = 0;   // the store gave them
  std::uint64_t late_bytes = 0;   // were on their way from the store
  std::uint64_t below_bytes = 0;  // a file tier gave them
  std::uint64_t hit_bytes = 0;    // RAM gave them: those that the node was told of
  std::uint64_t waits = 0;        // reads that were no hits in RAM

  std::uint64_t waited_bytes() const { return miss_bytes + late_bytes + below_bytes; }
};

class FileCosts final : public AccessObserver {
 public:
  // More files are not counted.
  static constexpr std::size_t kFilesMax = 4096;

  explicit FileCosts(const NodeMemory& memory) : memory_(memory) {}

  // Listens for one more run; the first one begins from nothing.
  void begin();
  void end();
  void on_accesses(std::span<const ToldAccess> batch) override;

  // Those that cost most, first the costliest.
  std::vector<FileCost> costliest(std::size_t count) const;
  // How many files have been read, as far as they were counted one by one.
  std::size_t files() const;

 private:
  struct Entry {
    ObjectKey key;
    FileCost cost;
  };
  FileCost* cost_of(const ToldAccess& told);

  const NodeMemory& memory_;
  std::atomic<unsigned> listeners_{0};
  mutable std::mutex mutex_;
  std::unordered_map<std::uint32_t, Entry> files_;  // by object
  std::vector<FileCost> gone_;                      // whose object is another file's by now
};

}  // namespace cairn::node
