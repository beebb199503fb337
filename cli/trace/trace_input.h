// SPDX-License-Identifier: Apache-2.0
//
// Traces as the commands take them: of any kind, or a message that says what is wrong.
//
// Thread safety: pure functions but for what they print. Errors: Failure.
#pragma once

#include <memory>
#include <string>

#include "service/trace/trace_event.h"

namespace cairn::cli {

std::unique_ptr<TraceSource> open_trace_or_fail(const std::string& path);

// Once there is no further event: fails if that is because the trace is damaged.
void require_whole(const TraceSource& trace, const char* remedy);

void say_warning(const TraceSource& trace);

}  // namespace cairn::cli
