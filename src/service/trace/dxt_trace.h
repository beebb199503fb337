// SPDX-License-Identifier: Apache-2.0
// What darshan-dxt-parser prints of a Darshan log with DXT, the extended tracing (Xu and others:
// "DXT: Darshan eXtended Tracing", CUG 2017; darshan-util/darshan-dxt-logutils.c, Darshan 3.x):
// under a heading for each file and process the reads and writes with range and time.
//
// The text is ordered by file and process; the events come in the order of time, for which all of
// them are held. The accesses of MPI-IO are left out: they reach the file system as accesses of
// POSIX, which stand there as well.
//
// Thread safety: none. Ownership: the events and the names.
// Errors: those of the input, or kInvalid with file and line; there are no events then.
#pragma once

#include <memory>
#include <vector>

#include "service/trace/text_input.h"
#include "service/trace/trace_event.h"

namespace cairn {

// 40 bytes each; more is a mistake, and would be one for the machine.
inline constexpr std::size_t kDxtEventsMax = std::size_t{1} << 27;

class DxtTrace final : public TraceSource {
 public:
  static bool begins(std::string_view text);
  // Reads all of it.
  static Result<std::unique_ptr<DxtTrace>> open(std::unique_ptr<TextInput> input);

  bool next(TraceEvent* event) override;
  Status status() const override { return Status::ok(); }
  std::string warning() const override { return warning_; }
  const TraceNames& names() const override { return names_; }

 private:
  DxtTrace() = default;
  friend class DxtText;

  std::vector<TraceEvent> events_;
  std::size_t next_ = 0;
  TraceNames names_;
  std::string warning_;
};

}  // namespace cairn
