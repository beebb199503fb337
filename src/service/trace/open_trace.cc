// SPDX-License-Identifier: Apache-2.0
#include "service/trace/open_trace.h"

#include <utility>

#include "service/trace/csv_trace.h"
#include "service/trace/dxt_trace.h"
#include "service/trace/text_input.h"
#include "service/trace/trace_reader.h"

namespace cairn {
namespace {

// The preamble of a Darshan log names mount points, of which there may be a page.
constexpr std::size_t kSniffedBytes = 16 * 1024;

template <typename Source>
Result<std::unique_ptr<TraceSource>> as_source(Result<std::unique_ptr<Source>> source) {
  if (!source) return source.status();
  return std::unique_ptr<TraceSource>(std::move(*source));
}

}  // namespace

Result<std::unique_ptr<TraceSource>> open_trace(const std::string& path) {
  auto input = TextInput::open(path);
  if (!input) return input.status();
  const std::string_view beginning = (*input)->peek(kSniffedBytes);
  const std::string_view magic(reinterpret_cast<const char*>(kTraceMagic.data()),
                               kTraceMagic.size());
  if (beginning.starts_with(magic)) return as_source(TraceReader::open(path));
  if (beginning.starts_with(kCsvHeading)) return as_source(CsvTrace::open(std::move(*input)));
  if (DxtTrace::begins(beginning)) return as_source(DxtTrace::open(std::move(*input)));
  CAIRN_RETURN_IF_ERROR((*input)->status());
  return Status(StatusCode::kInvalid,
                "trace: " + path +
                    " is no trace: it begins neither like one of Cairn, nor like the text of "
                    "darshan-dxt-parser, nor with the heading " +
                    std::string(kCsvHeading));
}

}  // namespace cairn
