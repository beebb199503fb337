// SPDX-License-Identifier: Apache-2.0
#include "node/drain.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace cairn::node {
namespace {

constexpr std::size_t kPathsMax = 100;
// Dirty data without a descriptor: its message may still be on the way.
constexpr std::int64_t kDescriptorWaitNanos = 2'000'000'000;
constexpr std::uint32_t kAttempts = 2;

bool is_hopeless(const UnstoredFile& file, const StoreFiles& files, std::int64_t began_ns) {
  if (files.find(file.object) == nullptr) return monotonic_ns() - began_ns > kDescriptorWaitNanos;
  return file.failures >= kAttempts && file.last_failure_ns > began_ns;
}

// Short pauses at first, so that a small drain is not rounded up; what is looked at costs a pass over the dirty map.
std::chrono::milliseconds pause_after(int rounds) { return std::chrono::milliseconds(rounds < 20 ? 1 : 10); }

}  // namespace

DrainOutcome drain(const NodeMemory& memory, StoreFiles& files, Flusher& flusher, const DrainOptions& options) {
  const std::int64_t began = monotonic_ns();
  std::int64_t reported = began;
  std::uint64_t reported_bytes = memory.header().dirty_bytes.load();
  DrainOutcome outcome;
  {
    const Flusher::DrainScope scope(flusher);
    for (int round = 0;; ++round) {
      outcome.left = view_dirty(memory, files, 0);
      // A stream that has just written its last block still settles size and times.
      if (outcome.left.files.empty() && flusher.is_quiet()) break;
      const bool hopeless = !outcome.left.files.empty() && std::all_of(outcome.left.files.begin(), outcome.left.files.end(),
                                        [&](const UnstoredFile& f) { return is_hopeless(f, files, began); });
      const std::int64_t now = monotonic_ns();
      const double seconds = static_cast<double>(now - began) / 1e9;
      if (hopeless || (options.timeout_seconds && seconds > *options.timeout_seconds)) break;
      if (options.progress && now - reported >= std::int64_t{kProgressMs} * 1'000'000) {
        DrainProgress progress;
        progress.remaining_bytes = outcome.left.bytes;
        progress.remaining_files = outcome.left.files.size();
        const std::uint64_t stored = reported_bytes > outcome.left.bytes ? reported_bytes - outcome.left.bytes : 0;
        progress.rate_bytes_per_second =
            static_cast<std::uint64_t>(static_cast<double>(stored) * 1e9 / static_cast<double>(now - reported));
        progress.file = flusher.current_path();
        reported = now;
        reported_bytes = outcome.left.bytes;
        if (!options.progress(progress)) break;
      }
      std::this_thread::sleep_for(pause_after(round));
    }
  }
  outcome.sync_error = files.make_durable();
  files.drop_idle();
  outcome.left = view_dirty(memory, files, kPathsMax);
  outcome.stored = outcome.left.files.empty() && outcome.sync_error == 0;
  outcome.seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
  return outcome;
}

}  // namespace cairn::node
