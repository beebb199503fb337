// SPDX-License-Identifier: Apache-2.0
// What reading each file has cost a run while it is sampled: bytes that the store, or a tier below
// RAM, had to give while a program of the run waited.
//
// It hears what learners hear, which is lossy and has only a part of the plain hits. Clients tell
// each miss, so the order of the files is right unless events were lost. An event names the owner
// of its process's slot, and the table of clients knows the run of an owner, also for a while after
// the process has gone.
//
// The store may hang where the name of a file is looked up, so no lock is held meanwhile.
//
// Thread safety: on_accesses() by the event reader, all else from any thread. Units: bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/attachment/client_table.h"
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
  // More files are not counted: of one run, and of all together.
  static constexpr std::size_t kFilesMax = 4096;
  static constexpr std::size_t kFilesOfAllMax = 8 * kFilesMax;

  FileCosts(const NodeMemory& memory, const ClientTable& clients)
      : memory_(memory), clients_(clients) {}

  // Listens for this run as well, which begins from nothing.
  void begin(std::uint32_t run);
  void end(std::uint32_t run);
  void on_accesses(std::span<const ToldAccess> batch) override;

  // Those that cost the run most, first the costliest.
  std::vector<FileCost> costliest(std::uint32_t run, std::size_t count) const;
  // How many files the run has read, as far as they were counted one by one.
  std::size_t files(std::uint32_t run) const;

 private:
  struct Entry {
    ObjectKey key;
    FileCost cost;
  };
  struct RunCosts {
    std::unordered_map<std::uint32_t, Entry> files;  // by object
    std::vector<FileCost> gone;                      // whose object is another file's by now
    std::size_t count() const { return files.size() + gone.size(); }
  };
  struct Unnamed {
    std::uint32_t run = 0;
    ToldAccess told;
    ObjectKey key;
  };
  FileCost* cost_of(const ToldAccess& told, std::uint32_t run, RunCosts* costs);
  void add_batch(std::span<const ToldAccess> batch);
  void name_files();

  const NodeMemory& memory_;
  const ClientTable& clients_;
  std::atomic<std::size_t> listening_{0};  // to runs
  mutable std::mutex mutex_;
  std::map<std::uint32_t, RunCosts> runs_;
  std::size_t files_of_all_ = 0;
  std::vector<Unnamed> unnamed_;  // the event reader's
};

}  // namespace cairn::node
