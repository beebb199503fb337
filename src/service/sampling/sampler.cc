// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/sampler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "service/process/log.h"
#include "service/sampling/record_file.h"

namespace cairn::node {
namespace {

std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Sampler::Sampler(const SamplerSources& sources) : from_(sources) {
  from_.clients.set_on_release([this](const ClientInfo& client, const CounterSums& sums) {
    shares_.note_departed(client, sums);
  });
}

void Sampler::begin(const Run& run, const std::string& record) {
  shares_.begin(run.number());
  from_.files.begin();
  nlohmann::json store = store_json();
  const std::lock_guard lock(mutex_);
  from_.gauges.find_columns();
  const auto [entry, is_new] =
      runs_.try_emplace(run.id, run, record, from_.gauges.columns().size());
  CAIRN_CHECK(is_new);  // the table of runs has no two of one id
  Series& series = entry->second;
  const std::int64_t now = monotonic_ns();
  series.began_unix_ns = unix_ns();
  series.store = std::move(store);
  take(&series, now);
  save(&series, now);
  if (!thread_.joinable() && !is_stopping_) thread_ = std::thread([this] { work(); });
  wake_.notify_all();
}

void Sampler::end(const Run& run) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = runs_.find(run.id);
    if (found == runs_.end()) return;
    Series& series = found->second;
    // The store was looked at when the run began: it may hang by now, and the end of a run does not
    // wait for it.
    const std::int64_t now = monotonic_ns();
    take(&series, now);
    save(&series, now);
    ended_.emplace_back(run.id, json_of(series));
    if (ended_.size() > kEndedRunsMax) ended_.pop_front();
    runs_.erase(found);
  }
  shares_.end(run.number());
  from_.files.end();
}

std::optional<nlohmann::json> Sampler::timeline(const std::string& run) {
  const std::lock_guard lock(mutex_);
  if (const auto found = runs_.find(run); found != runs_.end()) {
    take(&found->second, monotonic_ns());
    return json_of(found->second);
  }
  for (auto each = ended_.rbegin(); each != ended_.rend(); ++each) {
    if (each->first == run) return each->second;
  }
  return std::nullopt;
}

void Sampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  from_.clients.set_on_release(nullptr);
}

void Sampler::work() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    if (runs_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const std::int64_t now = monotonic_ns();
    std::int64_t next = INT64_MAX;
    for (auto& [id, series] : runs_) {
      if (series.ring.is_due(now)) take(&series, now);
      if (now - series.saved_ns >= kSaveNanos && series.ring.time(series.ring.size() - 1) == now)
        save(&series, now);
      next = std::min(next, series.ring.next_ns());
    }
    CAIRN_CHECK(next > now);
    wake_.wait_for(lock, std::chrono::nanoseconds(next - now));
  }
}

void Sampler::take(Series* series, std::int64_t now_ns) const {
  CAIRN_DCHECK(series != nullptr);
  const SampleRing& ring = series->ring;
  if (ring.size() != 0 && ring.time(ring.size() - 1) >= now_ns) return;
  series->ring.add(now_ns, from_.gauges.read(series->run.number()));
  note_leaders(series, now_ns);
}

// The expert that each tier follows, where that has changed.
void Sampler::note_leaders(Series* series, std::int64_t now_ns) const {
  if (from_.learned == nullptr || series->leaders.size() >= kLeadersMax) return;
  for (unsigned tier = 0; tier < from_.memory.tier_count(); ++tier) {
    const auto report = from_.learned->report(static_cast<TierId>(tier));
    if (report.references == 0) continue;
    const std::string name = tier_name(from_.config, tier);
    const Leader* last = nullptr;
    for (const Leader& each : series->leaders) {
      if (each.tier == name) last = &each;
    }
    if (last == nullptr || last->expert != report.follows)
      series->leaders.push_back({now_ns, name, report.follows});
  }
}

void Sampler::save(Series* series, std::int64_t now_ns) {
  series->saved_ns = now_ns;
  const Status status = write_record(series->record, json_of(*series));
  if (!status && !series->has_failed)
    log::warn("the record of run {} is not kept: {}", series->run.id, status.message());
  series->has_failed = !status;
}

}  // namespace cairn::node
