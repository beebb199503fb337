// SPDX-License-Identifier: Apache-2.0
// The sentences of advice: verdict, what limits, what would help, what was assumed.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <string>
#include <vector>

#include "cli/advice/advice_told.h"

namespace cairn::cli {

std::string verdict_sentence(const AdviceTold& told);
std::vector<std::string> reason_sentences(const AdviceTold& told);
// About devices, the kernel's cache, and where a trace is silent.
std::vector<std::string> assumption_sentences(const AdviceTold& told);

// The names in JSON.
const char* name_of(advice::Verdict verdict);
const char* name_of(advice::Refusal refusal);
const char* name_of(advice::Limit limit);
const char* name_of(advice::Improvement improvement);

}  // namespace cairn::cli
