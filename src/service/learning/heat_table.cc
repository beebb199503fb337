// SPDX-License-Identifier: Apache-2.0
#include "service/learning/heat_table.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "policy/heat/heat_file.h"
#include "service/learning/event_clock.h"
#include "service/learning/read_events.h"
#include "service/process/log_file.h"

namespace cairn::node {
namespace {

constexpr std::uint64_t kSavedBytesMin = 1 << 20;
constexpr std::size_t kSavedMax = 16'384;

}  // namespace

HeatTable::HeatTable(const NodeMemory& memory, const std::string& node_directory)
    : memory_(memory), directory_(node_directory + "/heat") {
  // A node of this name that was killed has left them.
  (void)remove_heat_files(directory_);
}

HeatTable::~HeatTable() {
  (void)remove_heat_files(directory_);
  ::rmdir(directory_.c_str());
}

std::string HeatTable::path_of(const ObjectKey& key) const {
  return directory_ + "/" + heat_file_name(key);
}

void HeatTable::load(Map* map) const {
  if (!saved_.contains(map->key)) return;
  auto state = load_heat(path_of(map->key), map->key, map->heat.pace());
  if (!state) {
    if (state.status().code() != StatusCode::kNotFound)
      log_warning(state.status().message() + ": begun anew");
    return;
  }
  (void)map->heat.restore(std::move(state.value()));
}

// Not those of small files, of which there may be millions: they are one segment or a few.
void HeatTable::save(const Map& map) {
  if (map.heat.file_bytes() < kSavedBytesMin || saved_.size() >= kSavedMax) return;
  saved_.insert(map.key);
  CAIRN_CHECK(saved_.size() <= kSavedMax);
  ::mkdir(directory_.c_str(), 0700);
  if (const Status status = save_heat(path_of(map.key), map.key, map.heat.state()); !status)
    log_warning(status.message());
}

void HeatTable::make_room_for_one() {
  if (maps_.size() < kMapsMax) return;
  const auto oldest = std::min_element(
      maps_.begin(), maps_.end(),
      [](const auto& left, const auto& right) { return left.second.used < right.second.used; });
  save(oldest->second);
  if (placer_ != nullptr) placer_->forget(static_cast<ObjectIndex>(oldest->first));
  maps_.erase(oldest);
}

HeatTable::Map& HeatTable::map_of(ObjectIndex object) {
  const ObjectKey key = memory_.objects().at(object).key();
  auto found = maps_.find(raw(object));
  // The record may be another file's by now.
  if (found != maps_.end() && found->second.key != key) {
    if (placer_ != nullptr) placer_->forget(object);
    maps_.erase(found);
    found = maps_.end();
  }
  if (found == maps_.end()) {
    make_room_for_one();
    found = maps_.try_emplace(raw(object)).first;
    found->second.key = key;
    load(&found->second);
    found->second.heat.resize(memory_.objects().at(object).size.load());
  }
  CAIRN_CHECK(maps_.size() <= kMapsMax);
  CAIRN_CHECK(found->second.key == key);
  found->second.used = ++events_;
  return found->second;
}

void HeatTable::on_accesses(std::span<const ToldAccess> batch) {
  const std::lock_guard lock(mutex_);
  const EventClock clock(memory_.identity().started);
  std::int64_t now = monotonic_ns();
  for (const ToldAccess& told : batch) {
    const AccessEvent& event = told.event;
    if (event.object == ObjectIndex::kNone) continue;
    now = clock.nanos(event.cycles);
    for (const ObjectIndex object : told.ends.closed) close(object, now);
    if (told.opens) open(event.object, now);
    if (is_read(event.kind)) {
      map_of(event.object).heat.access({event.offset, event.length}, now);
      if (placer_ != nullptr) touched_.insert(event.object);
    }
  }
  if (placer_ != nullptr) place(now);
}

void HeatTable::place(std::int64_t now_ns) {
  CAIRN_CHECK(placer_ != nullptr);
  for (const ObjectIndex object : touched_) {
    Map& map = map_of(object);
    if (map.heat.openers() != 0) placer_->note(object, map.heat, false);
  }
  touched_.clear();
  placer_->place(now_ns);
}

void HeatTable::open(ObjectIndex object, std::int64_t now_ns) {
  Map& map = map_of(object);
  map.heat.open(now_ns);
  if (placer_ != nullptr && map.heat.openers() == 1) placer_->note(object, map.heat, true);
}

void HeatTable::close(ObjectIndex object, std::int64_t now_ns) {
  Map& map = map_of(object);
  if (map.heat.openers() == 0 || !map.heat.close(now_ns)) return;
  save(map);
  if (placer_ != nullptr) placer_->forget(object);
}

void HeatTable::on_deaths(const StreamEnds& ends) {
  const std::lock_guard lock(mutex_);
  for (const ObjectIndex object : ends.closed) close(object, monotonic_ns());
}

std::optional<HeatPicture> HeatTable::picture_of(ObjectIndex object, const std::string& name) {
  const std::lock_guard lock(mutex_);
  Map& map = map_of(object);
  if (map.heat.epochs() == 0) return std::nullopt;
  return ::cairn::picture_of(map.heat, name, monotonic_ns());
}

}  // namespace cairn::node
