// SPDX-License-Identifier: Apache-2.0
//
// What the commands that read traces are given: traces of any kind, sizes, names of experts. Each
// is taken, or refused with a message for the user.
//
// Thread safety: pure functions but for what they print. Errors: Failure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "service/trace/trace_event.h"

namespace cairn::cli {

std::unique_ptr<TraceSource> open_trace_or_fail(const std::string& path);

// To be called after the last event: fails if the trace is damaged there.
void require_whole(const TraceSource& trace, const char* remedy);

void say_warning(const TraceSource& trace);

// Bytes, more than none.
std::uint64_t size_argument(const char* option, const std::string& text);

// All are names of experts of replacement.
void check_experts(const std::vector<std::string>& experts);

}  // namespace cairn::cli
