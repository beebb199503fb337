// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/file_costs.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "service/learning/accessed_file.h"
#include "service/learning/event_clock.h"
#include "service/learning/read_events.h"

namespace cairn::node {
namespace {

// Whether the event is of something that costs. While a trace is recorded, clients report single
// writes as well; their sums have them already.
bool is_cost(AccessKind kind) {
  return is_read(kind) || kind == AccessKind::kWaited || kind == AccessKind::kSync;
}

void add_sum(const AccessEvent& event, const EventClock& clock, FileCost* cost) {
  CAIRN_DCHECK(event.kind == AccessKind::kWaited);
  const WaitTimes times = WaitTimes::from_packed(event.offset);
  cost->written_bytes += event.length;
  cost->read_ns += clock.duration_ns(times.read_cycles);
  cost->write_ns += clock.duration_ns(times.write_cycles);
}

void add_cost(const AccessEvent& event, const EventClock& clock, FileCost* cost) {
  CAIRN_DCHECK(cost != nullptr);
  constexpr std::uint64_t kNsPerMicrosecond = 1000;
  switch (event.kind) {
    case AccessKind::kWaited:
      add_sum(event, clock, cost);
      return;
    case AccessKind::kSync:
      ++cost->fsyncs;
      cost->fsync_ns += event.length * kNsPerMicrosecond;
      return;
    case AccessKind::kMiss:
      cost->miss_bytes += event.length;
      break;
    case AccessKind::kLate:
      cost->late_bytes += event.length;
      break;
    case AccessKind::kBelow:
      cost->below_bytes += event.length;
      break;
    default:
      cost->hit_bytes += event.length;
      return;
  }
  ++cost->waits;
}

}  // namespace

void FileCosts::begin(std::uint32_t run) {
  const std::lock_guard lock(mutex_);
  const bool is_new = runs_.try_emplace(run).second;
  if (is_new) events_.ask_for(EventLevel::kWaits);
  listening_.store(runs_.size());
}

void FileCosts::end(std::uint32_t run) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(run);
  if (found == runs_.end()) return;
  CAIRN_CHECK(files_of_all_ >= found->second.count());
  files_of_all_ -= found->second.count();
  runs_.erase(found);
  events_.ask_no_more(EventLevel::kWaits);
  listening_.store(runs_.size());
}

void FileCosts::on_accesses(std::span<const ToldAccess> batch) {
  if (listening_.load(std::memory_order_relaxed) == 0) return;
  add_batch(batch);
  name_files();
}

void FileCosts::add_batch(std::span<const ToldAccess> batch) {
  const EventClock clock(memory_.identity().started);
  const std::lock_guard lock(mutex_);
  // What stands in a row is of one process, most often.
  Owner owner;
  RunCosts* costs = nullptr;
  std::uint32_t run = 0;
  for (const ToldAccess& told : batch) {
    if (!is_cost(told.event.kind) || told.event.object == ObjectIndex::kNone) continue;
    if (told.event.owner != owner) {
      owner = told.event.owner;
      run = clients_.run_of(owner);
      const auto found = runs_.find(run);
      costs = found == runs_.end() ? nullptr : &found->second;
    }
    if (costs == nullptr) continue;
    if (told.event.kind == AccessKind::kSync) ++costs->fsyncs;
    if (FileCost* cost = cost_of(told, run, costs); cost != nullptr)
      add_cost(told.event, clock, cost);
  }
}

// Null: there are too many files.
FileCost* FileCosts::cost_of(const ToldAccess& told, std::uint32_t run, RunCosts* costs) {
  CAIRN_DCHECK(costs != nullptr);
  const ObjectKey key = memory_.objects().at(told.event.object).key();
  const auto found = costs->files.find(raw(told.event.object));
  if (found != costs->files.end() && found->second.key == key) return &found->second.cost;
  if (costs->count() >= kFilesMax || files_of_all_ >= kFilesOfAllMax) return nullptr;
  if (found != costs->files.end()) costs->gone.push_back(std::move(found->second.cost));
  ++files_of_all_;
  Entry& entry = costs->files[raw(told.event.object)];
  entry = Entry{key, FileCost{name_by_key(key), told.event.object}};
  unnamed_.push_back({run, told, key});
  return &entry.cost;
}

// By the descriptor of the program; of a file that it has closed since, by the one that the service
// stores it through.
std::string FileCosts::name_of(const Unnamed& file) const {
  const ToldAccess& told = file.told;
  const pid_t pid = memory_.slot(told.slot()).pid.load(std::memory_order_relaxed);
  const std::string name = name_of_accessed(pid, told.event.descriptor, file.key);
  if (name != name_by_key(file.key)) return name;
  const StoreFilePtr written = written_.find(told.event.object);
  if (written == nullptr || written->key != file.key) return name;
  return path_of_descriptor(written->fd.get());
}

// Those that were new in the last batch.
void FileCosts::name_files() {
  for (const Unnamed& each : unnamed_) {
    const AccessEvent& event = each.told.event;
    std::string name = name_of(each);
    const std::lock_guard lock(mutex_);
    const auto run = runs_.find(each.run);
    if (run == runs_.end()) continue;
    const auto file = run->second.files.find(raw(event.object));
    if (file != run->second.files.end() && file->second.key == each.key)
      file->second.cost.path = std::move(name);
  }
  unnamed_.clear();
}

std::vector<FileCost> FileCosts::costliest(std::uint32_t run, std::size_t count) const {
  std::vector<FileCost> costs;
  {
    const std::lock_guard lock(mutex_);
    const auto found = runs_.find(run);
    if (found == runs_.end()) return costs;
    costs = found->second.gone;
    for (const auto& [object, entry] : found->second.files) costs.push_back(entry.cost);
  }
  // What did not wait stands behind what did, by the bytes that were told of.
  std::sort(costs.begin(), costs.end(), [](const FileCost& a, const FileCost& b) {
    return std::tuple(a.cost_ns(), a.waited_bytes(), a.hit_bytes) >
           std::tuple(b.cost_ns(), b.waited_bytes(), b.hit_bytes);
  });
  if (costs.size() > count) costs.resize(count);
  CAIRN_CHECK(costs.size() <= count);
  return costs;
}

FileCosts::Totals FileCosts::totals(std::uint32_t run) const {
  Totals totals;
  const auto add = [&totals](const FileCost& cost) {
    totals.read += cost.was_read() ? 1 : 0;
    totals.written += cost.written_bytes != 0 ? 1 : 0;
  };
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(run);
  if (found == runs_.end()) return totals;
  totals.fsyncs = found->second.fsyncs;
  for (const auto& [object, entry] : found->second.files) add(entry.cost);
  for (const FileCost& cost : found->second.gone) add(cost);
  CAIRN_CHECK(std::max(totals.read, totals.written) <= found->second.count());
  return totals;
}

}  // namespace cairn::node
