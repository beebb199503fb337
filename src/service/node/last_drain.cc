// SPDX-License-Identifier: Apache-2.0
#include "service/node/last_drain.h"

#include <cstring>

#include "base/size_text.h"
#include "service/process/log.h"

namespace cairn::node {

DrainOutcome LastDrain::run(EndSignals& signals, const std::function<bool()>& is_given_up) const {
  DrainOptions options;
  options.progress = [&](const DrainProgress&) {
    return !signals.is_asking() && !(is_given_up && is_given_up());
  };
  return drain(memory_, files_, flusher_, options);
}

bool LastDrain::run_and_tell(EndSignals& signals) const {
  const DrainOutcome outcome = run(signals, {});
  log_unstored(outcome.left);
  return outcome.stored;
}

bool LastDrain::finish(bool at_once) const {
  if (!at_once) {
    const DrainOutcome outcome = drain(memory_, files_, flusher_, DrainOptions());
    log_unstored(outcome.left);
    return outcome.stored;
  }
  const std::vector<UnstoredFile> left = list_unsynced(memory_, files_, 100);
  log_unstored(left);
  return left.empty();
}

void LastDrain::log_unstored(const std::vector<UnstoredFile>& left) {
  for (const UnstoredFile& file : left) {
    if (file.path.empty()) break;
    log::error("not stored: {} ({} of it): {}", file.path, format_size(file.dirty_bytes),
               file.error == 0 ? "not tried" : std::strerror(file.error));
  }
}

}  // namespace cairn::node
