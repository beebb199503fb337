// SPDX-License-Identifier: Apache-2.0
// A whole answer of `cairn advise`, as text and JSON are made from it.
//
// Thread safety: a value. Ownership: owns what it holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/advice/advice_words.h"
#include "cli/advice/trained_devices.h"

namespace cairn::cli {

// A running node whose programs were recorded for the advice.
struct LookedAtNode {
  std::string name;
  double seconds = 0;  // that it was recorded
  std::uint64_t accesses = 0;
  std::uint64_t lost = 0;  // came too fast to be recorded
  // Since it began.
  double uptime_seconds = 0;
  double read_bytes = 0;
  double miss_bytes = 0;  // of those that were read, from the store
  double write_bytes = 0;
};

struct AdviceTold {
  advice::Workload work;
  AdviceQuestion question;
  TrainedUses trained;
  advice::Advice advice;
  std::optional<LookedAtNode> node = std::nullopt;
};

}  // namespace cairn::cli
