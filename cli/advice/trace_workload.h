// SPDX-License-Identifier: Apache-2.0
// A trace as advice needs it: what its accesses come to, and the miss-ratio curves of them.
//
// Thread safety: pure function. Ownership: values. Memory: some megabytes, and what
// policy/advice/access_summary.h says, whatever the length of the trace. Errors: Failure.
#pragma once

#include <string>

#include "policy/advice/forecast.h"

namespace cairn::cli {

// Reads the trace to its end. Errors: Failure for what is no trace, a damaged one, and one without
// reads and writes.
advice::Workload read_workload(const std::string& path);
// The same of a trace that the command has made itself, of that program: no file is named.
advice::Workload read_workload(const std::string& path, const std::string& program);

}  // namespace cairn::cli
