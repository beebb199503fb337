// SPDX-License-Identifier: Apache-2.0
// The sentences of advice: verdict, what limits, what would help, what was assumed.
//
// Thread safety: pure functions. Ownership: results are values but for what borrows from `told`.
#pragma once

#include <string>
#include <vector>

#include "cli/advice/advice_told.h"

namespace cairn::cli {

std::string verdict_sentence(const AdviceTold& told);
std::vector<std::string> reason_sentences(const AdviceTold& told);
// About devices, the kernel's cache, and where a trace is silent.
std::vector<std::string> assumption_sentences(const AdviceTold& told);

// Tiers that may be used and are not advised, each with why. None where Cairn is not to be used,
// and for --what-if, which says itself what it has.
struct TierLeftOut {
  const advice::FileTierPlan* tier = nullptr;  // of the question
  const char* reason = "";                     // in JSON
  std::string sentence;
};
std::vector<TierLeftOut> tiers_left_out(const AdviceTold& told);

// The names in JSON.
const char* name_of(advice::Verdict verdict);
const char* name_of(advice::Refusal refusal);
const char* name_of(advice::Limit limit);
const char* name_of(advice::Improvement improvement);

}  // namespace cairn::cli
