// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/played_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/trace/trace_input.h"

namespace cairn::cli {
namespace {

bool is_read(TraceKind kind) {
  return kind == TraceKind::kReadMiss || kind == TraceKind::kReadHit ||
         kind == TraceKind::kReadPrefetched;
}

// Ranges of bytes; those that touch are one.
class Ranges {
 public:
  void add(std::uint64_t begin, std::uint64_t end) {
    auto at = ends_.upper_bound(begin);
    if (at != ends_.begin() && std::prev(at)->second >= begin) --at;
    while (at != ends_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = ends_.erase(at);
    }
    ends_.emplace(begin, end);
  }
  // Where the last part of [begin, end) that is in no range ends; 0 when there is none.
  std::uint64_t end_of_gap(std::uint64_t begin, std::uint64_t end) const {
    auto at = ends_.lower_bound(end);
    if (at == ends_.begin()) return end;
    --at;
    if (at->second < end) return end;
    return at->first <= begin ? 0 : at->first;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by their begin
};

class Planner {
 public:
  explicit Planner(bool in_order) : in_order_(in_order) {}

  void add(const TraceEvent& event, std::uint64_t number) {
    StreamUse& use = plan_.streams[stream_of(event)];
    use.last_event = number;
    if (event.file >= plan_.files.size()) {
      plan_.files.resize(event.file + 1);
      written_.resize(event.file + 1);
    }
    PlayedFile& file = plan_.files[event.file];
    file.is_used = true;
    const std::uint64_t end = event.offset + event.length;
    if (event.kind == TraceKind::kWrite) {
      use.writes = true;
      file.is_written = true;
      if (in_order_) written_[event.file].add(event.offset, end);
    } else if (is_read(event.kind)) {
      use.reads = true;
      file.bytes_needed =
          std::max(file.bytes_needed, written_[event.file].end_of_gap(event.offset, end));
    }
  }

  PlayPlan finish(const TraceNames& names, bool reads_only) {
    for (std::size_t at = 0; at < plan_.files.size(); ++at) {
      PlayedFile& file = plan_.files[at];
      // Without writes, a replay does not open files that the trace only writes.
      file.is_used = file.is_used && (!reads_only || file.bytes_needed > 0);
      if (!file.is_used) continue;
      file.path = path_below(names.files.name(static_cast<std::uint32_t>(at)));
      ++plan_.files_used;
    }
    plan_.processes = names.processes.count();
    return std::move(plan_);
  }

 private:
  const bool in_order_;
  PlayPlan plan_;
  std::vector<Ranges> written_;  // by file
};

}  // namespace

bool PlayedTrace::next(TraceEvent* event) {
  while (access_.length == 0) {
    if (accesses_ == selection_.accesses_max) return false;
    if (!source_->next(&access_)) {
      require_whole(*source_, "record it again, or play the accesses before that with --first");
      return false;
    }
    if (access_.kind == TraceKind::kOpen || access_.kind == TraceKind::kClose) {
      *event = access_;
      event->offset = 0;
      event->length = 0;
      access_.length = 0;
      return true;
    }
    if (!take_access()) access_.length = 0;
  }
  *event = access_;
  event->length = std::min(access_.length, selection_.call_bytes_max);
  access_.offset += event->length;
  access_.length -= event->length;
  return true;
}

bool PlayedTrace::take_access() {
  const bool is_wanted =
      is_read(access_.kind) || (access_.kind == TraceKind::kWrite && !selection_.reads_only);
  if (!is_wanted || access_.length == 0) return false;
  if (access_.offset > static_cast<std::uint64_t>(INT64_MAX) - access_.length) {
    throw Failure(fmt::format("the trace accesses byte {} of {}, which no file has", access_.offset,
                              printable(source_->names().files.name(access_.file))),
                  "record it again, or play the accesses before that with --first");
  }
  ++accesses_;
  return true;
}

std::string path_below(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (parts.empty() || parts.back() == "_up") {
      parts.emplace_back("_up");
    } else {
      parts.pop_back();
    }
  }
  if (parts.empty()) return "unnamed";
  std::string path = parts.front();
  for (std::size_t at = 1; at < parts.size(); ++at) path += "/" + parts[at];
  return path;
}

std::size_t PlayedStreamHash::operator()(const PlayedStream& stream) const {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // (Fibonacci hashing; Knuth, TAOCP 3, 6.4)
  std::uint64_t mixed = (std::uint64_t{stream.file} << 32 | stream.process) * kGolden;
  mixed = (mixed ^ (mixed >> 29) ^ stream.stream) * kGolden;
  return mixed ^ (mixed >> 32);
}

PlayPlan plan_of(PlayedTrace& trace, bool in_order) {
  Planner planner(in_order);
  TraceEvent event;
  for (std::uint64_t number = 0; trace.next(&event); ++number) planner.add(event, number);
  return planner.finish(trace.source().names(), trace.selection().reads_only);
}

}  // namespace cairn::cli
