// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace cairn::cli {
namespace {

// Code points, not bytes: file names are UTF-8 more often than not.
size_t display_width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) & 0xC0) != 0x80;
  }));
}

}  // namespace

bool write_fully(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void say(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines += "cairn: ";
    lines += text.substr(0, end);
    lines += '\n';
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  (void)write_fully(STDERR_FILENO, lines);
}

void say_failure(std::string_view message, std::string_view remedy) {
  std::string text(message);
  if (!remedy.empty()) {
    text += '\n';
    text += remedy;
  }
  say(text);
}

void print(std::string_view text) { (void)write_fully(STDOUT_FILENO, text); }

std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         std::string_view alignment) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], display_width(row[column]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      if (column > 0) line += "  ";
      const std::string padding(widths[column] - display_width(row[column]), ' ');
      const bool right = column < alignment.size() && alignment[column] == 'r';
      line += right ? padding + row[column] : row[column] + padding;
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + '\n';
  }
  return text;
}

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

unsigned terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  return 80;
}

}  // namespace cairn::cli
