// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/trace_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/size_text.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "policy/replacement/compared_experts.h"
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

std::uint64_t size_argument(const char* option, const std::string& text) {
  const auto bytes = parse_size(text);
  if (!bytes || *bytes == 0)
    throw Failure(fmt::format("{}: \"{}\" is not a size", option, text), "write one such as 64K");
  return *bytes;
}

void check_experts(const std::vector<std::string>& experts) {
  for (const std::string& name : experts) {
    if (make_compared_expert(name, 1) != nullptr) continue;
    std::vector<std::string> names;
    for (const ExpertMaker& maker : kExpertMakers) names.emplace_back(maker.name);
    for (const ExpertMaker& maker : kComparedExpertMakers) names.emplace_back(maker.name);
    throw Failure(fmt::format("no expert is called \"{}\"", name),
                  fmt::format("the experts are {}", fmt::join(names, ", ")));
  }
}

}  // namespace cairn::cli
