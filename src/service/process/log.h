// SPDX-License-Identifier: Apache-2.0
// Lines for the service's log (log_file.h), with the format strings of fmt:
//
//   log::warn("the rescue has stored {} of {} files", stored, all);
//
// The library behind it is log_file.cc's alone: its headers cost a compiler ten seconds a source.
//
// Thread safety: any thread.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace cairn::log {

enum class Level : std::uint8_t { kInfo, kWarning, kError, kCritical };

void write_line(Level level, std::string_view text);

template <typename... Values>
void info(fmt::format_string<Values...> format, Values&&... values) {
  write_line(Level::kInfo, fmt::format(format, std::forward<Values>(values)...));
}

template <typename... Values>
void warn(fmt::format_string<Values...> format, Values&&... values) {
  write_line(Level::kWarning, fmt::format(format, std::forward<Values>(values)...));
}

template <typename... Values>
void error(fmt::format_string<Values...> format, Values&&... values) {
  write_line(Level::kError, fmt::format(format, std::forward<Values>(values)...));
}

template <typename... Values>
void critical(fmt::format_string<Values...> format, Values&&... values) {
  write_line(Level::kCritical, fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace cairn::log
