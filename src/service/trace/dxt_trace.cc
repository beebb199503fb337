// SPDX-License-Identifier: Apache-2.0
#include "service/trace/dxt_trace.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "service/trace/access_text.h"

namespace cairn {
namespace {

constexpr std::string_view kDxtHeading = "# DXT, ";
constexpr std::string_view kLogHeading = "# darshan log version";

// module, rank, direction, segment, offset, length, start, end; the targets of Lustre may follow.
constexpr std::size_t kDxtWords = 8;

bool take_words(std::string_view line, std::array<std::string_view, kDxtWords>* words) {
  for (std::string_view& word : *words) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) return false;
    line.remove_prefix(begin);
    word = line.substr(0, line.find_first_of(" \t"));
    line.remove_prefix(word.size());
  }
  return true;
}

// What stands behind `label`, up to `end` or all of it. Nothing when the label is not there.
std::optional<std::string_view> text_behind(std::string_view line, std::string_view label,
                                            std::string_view end = {}) {
  const std::size_t begin = line.find(label);
  if (begin == line.npos) return std::nullopt;
  line.remove_prefix(begin + label.size());
  return end.empty() ? line : line.substr(0, line.find(end));
}

}  // namespace

// The text while it is read: under which heading a line stands.
class DxtText {
 public:
  DxtText(TextInput* input, DxtTrace* trace) : input_(input), trace_(trace) {}

  Status read() {
    std::string_view line;
    while (input_->next_line(&line)) {
      if (line.empty()) continue;
      CAIRN_RETURN_IF_ERROR(line.front() == '#' ? read_heading(line) : read_access(line));
    }
    CAIRN_RETURN_IF_ERROR(input_->status());
    sort_by_time();
    if (left_out_ > 0) {
      trace_->warning_ = "trace: " + input_->path() + ": " + std::to_string(left_out_) +
                         " accesses of other modules than POSIX were left out";
    }
    return Status::ok();
  }

 private:
  // Accesses of the same time stay in the order of the text. (std::stable_sort() would do, but for
  // its use of what C++17 calls deprecated.)
  void sort_by_time() {
    const std::vector<TraceEvent> events = std::move(trace_->events_);
    std::vector<std::uint32_t> order(events.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
      const std::uint64_t left_ns = events[left].time_ns;
      const std::uint64_t right_ns = events[right].time_ns;
      return left_ns != right_ns ? left_ns < right_ns : left < right;
    });
    trace_->events_.clear();
    for (const std::uint32_t at : order) trace_->events_.push_back(events[at]);
  }

  Status refusal(const std::string& reason) const {
    return Status(StatusCode::kInvalid, "trace: " + input_->place() + reason);
  }

  Status read_heading(std::string_view line) {
    if (!line.starts_with(kDxtHeading)) return Status::ok();
    // A name may have a comma in it; it is the last thing on its line.
    if (const auto name = text_behind(line, "file_name: ")) {
      file_name_ = *name;
      rank_.reset();
      return Status::ok();
    }
    const auto rank = text_behind(line, "rank: ", ",");
    if (!rank) return Status::ok();
    rank_ = parse_signed(*rank);
    if (!rank_) return refusal("the rank is not a number");
    process_name_ = "rank " + std::to_string(*rank_);
    if (const auto host = text_behind(line, "hostname: "))
      process_name_ += " on " + std::string(*host);
    is_new_heading_ = true;
    return Status::ok();
  }

  Status read_access(std::string_view line) {
    std::array<std::string_view, kDxtWords> words;
    if (!take_words(line, &words))
      return refusal("this is not a line of DXT, for parts are missing");
    if (words[0] != "X_POSIX") {
      if (!words[0].starts_with("X_")) return refusal("this is not a line of DXT");
      ++left_out_;
      return Status::ok();
    }
    const auto rank = parse_signed(words[1]);
    if (!rank_ || file_name_.empty()) return refusal("there is no heading with file and rank");
    if (rank != rank_) return refusal("the rank is not that of the heading");
    const auto offset = parse_whole(words[4]);
    const auto length = parse_whole(words[5]);
    const auto time_ns = parse_seconds(words[6]);
    const bool is_write = words[2] == "write";
    if ((!is_write && words[2] != "read") || !offset || !length || !time_ns) {
      return refusal("the access is not: read or write, segment, offset, length, start, end");
    }
    TextAccess access{.time_ns = *time_ns, .offset = *offset, .length = *length};
    if (!access.is_possible()) return refusal("no file is as long as this access says");
    access.is_write = is_write;
    return add(access);
  }

  // A file and a process have a name from their first access on: headings without any are common.
  Status add(TextAccess access) {
    if (is_new_heading_) {
      file_ = trace_->names_.files.number_of(file_name_);
      process_ = trace_->names_.processes.number_of(process_name_);
      is_new_heading_ = false;
    }
    access.file = file_;
    access.process = process_;
    do {
      if (trace_->events_.size() == kDxtEventsMax) return refusal("there are too many accesses");
      trace_->events_.push_back(access.take_part());
    } while (access.length > 0);
    return Status::ok();
  }

  TextInput* const input_;
  DxtTrace* const trace_;
  std::string file_name_;
  std::optional<std::int64_t> rank_;
  std::string process_name_;
  bool is_new_heading_ = false;
  std::uint32_t file_ = 0;
  std::uint32_t process_ = 0;
  std::uint64_t left_out_ = 0;
};

bool DxtTrace::begins(std::string_view text) {
  return text.starts_with(kLogHeading) || text.find(kDxtHeading) != text.npos ||
         text.starts_with("# DXT_");
}

Result<std::unique_ptr<DxtTrace>> DxtTrace::open(std::unique_ptr<TextInput> input) {
  std::unique_ptr<DxtTrace> trace(new DxtTrace);
  CAIRN_RETURN_IF_ERROR(DxtText(input.get(), trace.get()).read());
  return trace;
}

bool DxtTrace::next(TraceEvent* event) {
  if (next_ == events_.size()) return false;
  *event = events_[next_++];
  return true;
}

}  // namespace cairn
