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

namespace cairn::log {

enum class Level : std::uint8_t { kInfo, kWarning, kError, kCritical };

// What cannot be formatted for want of memory is written as the format.
void write_line(Level level, fmt::string_view format, fmt::format_args values) noexcept;

template <typename... Values>
void info(fmt::format_string<Values...> format, Values&&... values) {
  write_line(Level::kInfo, format, fmt::make_format_args(values...));
}

template <typename... Values>
void warn(fmt::format_string<Values...> format, Values&&... values) {
  write_line(Level::kWarning, format, fmt::make_format_args(values...));
}

template <typename... Values>
void error(fmt::format_string<Values...> format, Values&&... values) {
  write_line(Level::kError, format, fmt::make_format_args(values...));
}

template <typename... Values>
void critical(fmt::format_string<Values...> format, Values&&... values) {
  write_line(Level::kCritical, format, fmt::make_format_args(values...));
}

}  // namespace cairn::log
