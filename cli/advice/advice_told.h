// SPDX-License-Identifier: Apache-2.0
// All that there is to say to somebody who has asked for advice.
//
// Thread safety: a value. Ownership: owns what it holds.
#pragma once

#include "cli/advice/advice_words.h"

namespace cairn::cli {

struct AdviceTold {
  advice::Workload work;
  AdviceQuestion question;
  advice::Advice advice;
};

}  // namespace cairn::cli
