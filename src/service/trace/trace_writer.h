// SPDX-License-Identifier: Apache-2.0
// Writes a trace (service/trace/trace_format.h). A reader gets all that was flushed, whatever
// happens afterwards: a trace whose writer died lacks its last events and its end, and the reader
// says so.
//
// Thread safety: none; one thread at a time. Ownership: the file, and the events of one block.
// States: open -> finished by finish(), or failed by the first error, which every later call
// returns. A writer that is destroyed while open leaves a trace without an end.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "service/trace/compression.h"
#include "service/trace/trace_event.h"
#include "service/trace/trace_format.h"

namespace cairn {

struct TraceWriterOptions {
  std::uint64_t start_unix_ns = 0;  // what TraceEvent::time_ns counts from
  std::uint32_t events_per_block = 16'384;
  int compression_level = 3;
  bool is_new = false;  // a file of that name is left alone, and create() fails
};

class TraceWriter {
 public:
  // Makes the file, or empties the one that is there. Errors: that of making it; kInvalid for an
  // option out of its range.
  static Result<std::unique_ptr<TraceWriter>> create(const std::string& path,
                                                     const TraceWriterOptions& options = {});
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // The number of a name for TraceEvent::file and ::process. Errors: kInvalid for a name of more
  // than kTraceNameBytesMax.
  Result<std::uint32_t> file(std::string_view name);
  Result<std::uint32_t> process(std::string_view name);
  // Errors: kInvalid for a number that no name has; the event is left out then.
  Status append(const TraceEvent& event);
  // Writes what has been gathered, though it is no full block. It is the kernel's then, not yet the
  // disk's.
  Status flush();
  // What all processes spent in calls, for the end.
  void set_io_ns(std::uint64_t nanos) { io_ns_ = nanos; }
  // Flushes, writes the end and closes the file.
  Status finish();

  std::uint64_t events() const { return events_; }
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  TraceWriter(std::string path, int fd, const TraceWriterOptions& options);
  Result<std::uint32_t> number_of(std::string_view name, bool is_process);
  Status flush_names();
  Status write_block(TraceBlockKind kind, const TraceBytes& raw, std::uint32_t entries);
  Status write_bytes(std::span<const std::uint8_t> bytes);
  Status fail(Status status);

  const std::string path_;
  int fd_;
  Status status_;
  BlockCompressor compressor_;
  const std::uint32_t events_per_block_;
  TraceNames names_;
  TraceBytes new_names_;
  std::uint32_t new_name_count_ = 0;
  std::vector<TraceEvent> gathered_;
  std::uint32_t blocks_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t io_ns_ = 0;
};

}  // namespace cairn
