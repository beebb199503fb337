// SPDX-License-Identifier: Apache-2.0
// A whole answer of `cairn advise`, as text and JSON are made from it.
//
// Thread safety: a value. Ownership: owns what it holds.
#pragma once

#include "cli/advice/advice_words.h"
#include "cli/advice/trained_devices.h"

namespace cairn::cli {

struct AdviceTold {
  advice::Workload work;
  AdviceQuestion question;
  TrainedUses trained;
  advice::Advice advice;
};

}  // namespace cairn::cli
