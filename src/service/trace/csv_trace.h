// SPDX-License-Identifier: Apache-2.0
// Accesses as comma-separated values, one a line, under the heading
//
//   t,rank,file,op,off,len
//
// with the time in seconds, the number of a process, the number of a file, 0 for a read or 1 for a
// write, and a range of bytes. Names are not known: they become "rank 3" and "file 7".
//
// Thread safety: none. Ownership: the input, and a name for each file and process.
// Errors: those of the input, or kInvalid with file and line; lines before it are returned.
#pragma once

#include <memory>

#include "service/trace/access_text.h"
#include "service/trace/text_input.h"
#include "service/trace/trace_event.h"

namespace cairn {

inline constexpr std::string_view kCsvHeading = "t,rank,file,op,off,len";

class CsvTrace final : public TraceSource {
 public:
  static Result<std::unique_ptr<CsvTrace>> open(std::unique_ptr<TextInput> input);

  bool next(TraceEvent* event) override;
  Status status() const override { return status_ ? input_->status() : status_; }
  const TraceNames& names() const override { return names_; }

 private:
  explicit CsvTrace(std::unique_ptr<TextInput> input) : input_(std::move(input)) {}
  bool read_access(std::string_view line);

  std::unique_ptr<TextInput> input_;
  Status status_;
  TraceNames names_;
  TextAccess access_;  // of which parts are still to be returned while it has a length
};

}  // namespace cairn
