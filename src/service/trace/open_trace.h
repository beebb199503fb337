// SPDX-License-Identifier: Apache-2.0
// Opens a trace of any kind that is known: Cairn's own, the text of darshan-dxt-parser, and CSV;
// texts also when they are compressed with zstd. What a file is shows in how it begins, not in its
// name.
//
// Thread safety: pure function. Ownership: the caller owns the source.
// Errors: those of the kind (service/trace/trace_reader.h, dxt_trace.h, csv_trace.h), or kInvalid
// for a file that is none.
#pragma once

#include <memory>
#include <string>

#include "service/trace/trace_event.h"

namespace cairn {

Result<std::unique_ptr<TraceSource>> open_trace(const std::string& path);

}  // namespace cairn
