// SPDX-License-Identifier: Apache-2.0
#include "cli/node/drain_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/clock.h"
#include "base/size_text.h"
#include "cli/node/json_fields.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

constexpr double kPlainLineSeconds = 5;
constexpr unsigned kBarCells = 20;
// From then on the store is said to hang.
constexpr double kIdleSeconds = 4;

std::string remaining_text(const DrainProgress& progress) {
  std::string text =
      fmt::format("{} in {} {} left", format_size(progress.remaining_bytes),
                  progress.remaining_files, progress.remaining_files == 1 ? "file" : "files");
  if (progress.rate_bytes_per_second >= 1) {
    text +=
        fmt::format(", {}/s", format_size(static_cast<uint64_t>(progress.rate_bytes_per_second)));
  } else if (progress.idle_seconds >= kIdleSeconds) {
    text += ", no answer from the backing store for " + format_duration(progress.idle_seconds);
  }
  return text;
}

}  // namespace

DrainProgress DrainProgress::from_json(const Json& progress) {
  DrainProgress result;
  result.remaining_bytes = unsigned_field(progress, "remaining_bytes");
  result.remaining_files = unsigned_field(progress, "remaining_files");
  result.rate_bytes_per_second = number_field(progress, "rate_bytes_per_second");
  result.idle_seconds = number_field(progress, "idle_seconds");
  result.file = printable(text_field(progress, "file"));
  return result;
}

std::string drain_bar(const DrainProgress& progress, uint64_t total_bytes, unsigned width) {
  const double share =
      total_bytes == 0
          ? 1
          : 1 - static_cast<double>(progress.remaining_bytes) /
                    static_cast<double>(std::max(total_bytes, progress.remaining_bytes));
  const auto filled = static_cast<unsigned>(share * kBarCells);
  std::string text =
      fmt::format("cairn: [{}{}] {:3.0f} %  {}", std::string(filled, '#'),
                  std::string(kBarCells - filled, '-'), share * 100, remaining_text(progress));
  if (progress.rate_bytes_per_second >= 1) {
    text += ", " + format_duration(static_cast<double>(progress.remaining_bytes) /
                                   progress.rate_bytes_per_second);
  }
  // The end of a path says more than its beginning.
  if (!progress.file.empty() && text.size() + 8 < width) {
    const size_t room = width - text.size() - 3;
    text += "  ";
    text += progress.file.size() <= room
                ? progress.file
                : "..." + progress.file.substr(progress.file.size() - room + 3);
  }
  if (text.size() >= width) text.resize(width - 1);
  return text;
}

std::string drain_line(const DrainProgress& progress, const std::string& verb) {
  std::string text = verb + ": " + remaining_text(progress);
  if (!progress.file.empty()) text += ", " + progress.file;
  return text;
}

DrainView::DrainView(std::string verb)
    : verb_(std::move(verb)), is_terminal_(stderr_is_terminal()) {
  started_seconds_ = monotonic_seconds();
  printed_seconds_ = started_seconds_;
}

DrainView::~DrainView() { clear(); }

void DrainView::update(const DrainProgress& progress) {
  total_bytes_ = std::max(total_bytes_, progress.remaining_bytes);
  if (is_terminal_) {
    (void)write_fully(STDERR_FILENO,
                      "\r\033[K" + drain_bar(progress, total_bytes_, terminal_width()));
    bar_is_drawn_ = true;
    return;
  }
  const double now = monotonic_seconds();
  if (now - printed_seconds_ < kPlainLineSeconds) return;
  printed_seconds_ = now;
  say(drain_line(progress, verb_));
}

void DrainView::clear() {
  if (bar_is_drawn_) (void)write_fully(STDERR_FILENO, "\r\033[K");
  bar_is_drawn_ = false;
}

}  // namespace cairn::cli
