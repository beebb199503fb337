// SPDX-License-Identifier: Apache-2.0
//
// The accesses of a trace that `cairn trace replay --files` plays, and the plan for them: the
// files, their lengths, and until when each stays open. The command reads a trace twice, for the
// plan and for the replay, so that the trace need not fit in memory.
//
// Thread safety: none. Ownership: a played trace owns its source; plans are values.
// Errors: Failure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "service/trace/trace_event.h"

namespace cairn::cli {

struct PlaySelection {
  std::uint64_t accesses_max = UINT64_MAX;
  bool reads_only = false;
  std::uint32_t call_bytes_max = UINT32_MAX;  // longer accesses become several calls
};

// The opens, closes, reads and writes of a replay, in the order of the trace. It leaves out
// accesses of no bytes, and a program's advice, because a trace does not hold its words.
class PlayedTrace {
 public:
  PlayedTrace(std::unique_ptr<TraceSource> source, const PlaySelection& selection)
      : source_(std::move(source)), selection_(selection) {}

  // Returns: false at the end; fails if the trace is damaged.
  bool next(TraceEvent* event);
  const TraceSource& source() const { return *source_; }
  const PlaySelection& selection() const { return selection_; }

 private:
  bool take_access();

  const std::unique_ptr<TraceSource> source_;
  const PlaySelection selection_;
  std::uint64_t accesses_ = 0;
  TraceEvent access_;  // of which calls are left while it has a length
};

// The place of a trace's file below the directory of the replay: its name without a leading slash,
// with "." and ".." resolved. A name that leads out of the directory has "_up" for each step.
std::string path_below(const std::string& name);

struct PlayedFile {
  std::string path;  // below the directory
  bool is_used = false;
  bool is_written = false;
  // The end of the bytes that the trace reads before it has written them.
  std::uint64_t bytes_needed = 0;
};

// The holder of an open file: a recorded open description, or a rank of a text trace.
struct PlayedStream {
  std::uint32_t file = 0;
  std::uint32_t process = 0;
  std::uint32_t stream = 0;
  friend bool operator==(const PlayedStream&, const PlayedStream&) = default;
};
inline PlayedStream stream_of(const TraceEvent& event) {
  return {event.file, event.process, event.stream};
}
struct PlayedStreamHash {
  std::size_t operator()(const PlayedStream& stream) const;
};

struct StreamUse {
  std::uint64_t last_event = 0;  // its number among those of PlayedTrace
  bool reads = false;
  bool writes = false;
};

struct PlayPlan {
  std::vector<PlayedFile> files;  // by their number in the trace
  std::unordered_map<PlayedStream, StreamUse, PlayedStreamHash> streams;
  std::uint32_t processes = 0;  // of the trace
  std::uint64_t files_used = 0;
};

// `in_order`: one process plays all. Otherwise no rank can rely on the earlier writes of another
// one, and files must be as long as all reads of them need.
PlayPlan plan_of(PlayedTrace& trace, bool in_order);

}  // namespace cairn::cli
