// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/sampler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "service/process/thread_start.h"
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

void Sampler::look_at_store() {
  if (from_.config.admits_by_value) (void)from_.store.last_or_ask();
}

void Sampler::begin(const Run& run, const std::string& record, Sampling how) {
  shares_.begin(run.number());
  from_.files.begin(run.number());
  const bool is_light = how == Sampling::kLight;
  const std::lock_guard lock(mutex_);
  from_.gauges.find_columns();
  const auto [entry, is_new] =
      runs_.try_emplace(run.id, run, record, from_.gauges.columns().size(),
                        is_light ? kLightIntervalNanos : kFirstIntervalNanos);
  CAIRN_CHECK(is_new);  // the table of runs has no two of one id
  Series& series = entry->second;
  const std::int64_t now = monotonic_ns();
  series.began_unix_ns = unix_ns();
  take(&series, now);
  series.saved_ns = now;
  if (!is_light) {
    ask_store(&series);
    save(&series, now);
  }
  // Without a thread the run has the samples of its begin and its end.
  if (!thread_.joinable() && !is_stopping_) (void)start_thread(&thread_, [this] { work(); });
  wake_.notify_all();
}

// Nobody asks for a light one that is over at once, and `cairn run` waits for this.
bool Sampler::is_asked_for(const Series& series, std::int64_t now_ns) {
  return series.ring.interval_ns() < kLightIntervalNanos ||
         now_ns - series.ring.time(0) > kLightIntervalNanos / 2;
}

void Sampler::count_files(const Run& run) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = runs_.find(run.id);
    if (found == runs_.end() || !is_asked_for(found->second, monotonic_ns())) return;
  }
  from_.files.settle();
}

void Sampler::end(const Run& run, RunEnd how) {
  std::string record;
  {
    const std::lock_guard lock(mutex_);
    const auto found = runs_.find(run.id);
    if (found == runs_.end()) return;
    Series& series = found->second;
    const std::int64_t now = monotonic_ns();
    take(&series, now);
    if (how == RunEnd::kAbandoned) {
      save(&series, now);
    } else {
      record = series.record;
    }
    if (is_asked_for(series, now)) ended_.emplace_back(run.id, json_of(series));
    if (ended_.size() > kEndedRunsMax) ended_.pop_front();
    runs_.erase(found);
  }
  if (!record.empty()) records_.leave(record);
  shares_.end(run.number());
  from_.files.end(run.number());
}

std::optional<nlohmann::json> Sampler::timeline(const std::string& run) {
  from_.files.settle();
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
  records_.stop();
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
      if (series.ring.is_due(now)) {
        from_.files.hurry();
        take(&series, now);
        ask_store(&series);
      }
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

// Once for each run, and not for those that are over at once.
void Sampler::ask_store(Series* series) {
  if (series->has_asked) return;
  series->has_asked = true;
  from_.store.ask();
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
  CAIRN_DCHECK(series != nullptr);
  series->saved_ns = now_ns;
  records_.put(series->record, record_text(json_of(*series)));
}

}  // namespace cairn::node
