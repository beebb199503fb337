// SPDX-License-Identifier: Apache-2.0
// What programs that have outlived their node have left word of, in the folder of its log
// (memory/flush/orphan_words.h).
//
// Thread safety: one recovery of a log at a time, when no such program lives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "memory/flush/orphan_words.h"

namespace cairn::durable {

// The whole words among the bytes of such a file, in their order.
std::vector<OrphanWord> whole_words(std::string_view bytes);

// Empty where no program has said any. Errors: kInvalid: something else has the name of the file;
// those of the file.
Result<std::vector<OrphanWord>> left_words(const std::string& folder);
Status forget_words(const std::string& folder);

}  // namespace cairn::durable
