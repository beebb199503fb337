// SPDX-License-Identifier: Apache-2.0
// The heat maps of the files that programs read (policy/heat/file_heat.h): made from their
// accesses, kept beside the node's state from a file's last close to its next open, deleted when
// the node ends.
//
// A map is knowledge of a file, which outlives streams. The table of streams
// (service/learning/stream_table.h) follows the open descriptions that a map counts.
//
// Thread safety: on_accesses() by one thread, picture_of() by any. Ownership: its maps, and the
// directory "heat" of the node, which is removed with it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>

#include "memory/tiers/node_memory.h"
#include "policy/heat/file_heat.h"
#include "policy/heat/heat_text.h"
#include "service/learning/access_observer.h"
#include "service/learning/heat_placer.h"

namespace cairn::node {

class HeatTable final : public AccessObserver {
 public:
  // In memory at once; what was used longest ago is kept in its file alone.
  static constexpr std::size_t kMapsMax = 256;

  HeatTable(const NodeMemory& memory, const std::string& node_directory);
  ~HeatTable();
  HeatTable(const HeatTable&) = delete;
  HeatTable& operator=(const HeatTable&) = delete;

  // Lets segments be placed by their scores as well. Before the first event.
  void set_placer(std::unique_ptr<HeatPlacer> placer) { placer_ = std::move(placer); }

  void on_accesses(std::span<const ToldAccess> batch) override;

  // Processes have died: descriptions that were theirs alone are closed.
  void on_deaths(const StreamEnds& ends) override;

  // The map of an object as it is now, under that name. Nothing when it was never read.
  std::optional<HeatPicture> picture_of(ObjectIndex object, const std::string& name);

 private:
  struct Map {
    ObjectKey key;
    FileHeat heat;
    std::uint64_t used = 0;
  };
  Map& map_of(ObjectIndex object);
  void open(ObjectIndex object, std::int64_t now_ns);
  void close(ObjectIndex object, std::int64_t now_ns);
  void place(std::int64_t now_ns);
  void load(Map* map) const;
  void save(const Map& map);
  void make_room_for_one();
  std::string path_of(const ObjectKey& key) const;

  const NodeMemory& memory_;
  const std::string directory_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint32_t, Map> maps_;
  std::set<ObjectKey> saved_;  // that have a file
  std::uint64_t events_ = 0;
  std::unique_ptr<HeatPlacer> placer_;  // null: nothing is placed by score
  std::set<ObjectIndex> touched_;       // in this batch
};

}  // namespace cairn::node
