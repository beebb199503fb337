// SPDX-License-Identifier: Apache-2.0
//
// Opens traces of any kind for the commands, or fails with a message for the user.
//
// Thread safety: pure functions but for what they print. Errors: Failure.
#pragma once

#include <memory>
#include <string>

#include "service/trace/trace_event.h"

namespace cairn::cli {

std::unique_ptr<TraceSource> open_trace_or_fail(const std::string& path);

// To be called after the last event: fails if the trace is damaged there.
void require_whole(const TraceSource& trace, const char* remedy);

void say_warning(const TraceSource& trace);

}  // namespace cairn::cli
