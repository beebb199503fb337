// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/trace_input.h"

#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "service/trace/open_trace.h"

namespace cairn::cli {

std::unique_ptr<TraceSource> open_trace_or_fail(const std::string& path) {
  auto trace = open_trace(path);
  if (!trace)
    throw Failure(trace.status().message(),
                  "traces are what `cairn trace record` writes, the text of darshan-dxt-parser, "
                  "or CSV");
  return std::move(trace.value());
}

void require_whole(const TraceSource& trace, const char* remedy) {
  if (!trace.status()) throw Failure(trace.status().message(), remedy);
}

void say_warning(const TraceSource& trace) {
  if (const std::string warning = trace.warning(); !warning.empty()) say(warning);
}

}  // namespace cairn::cli
