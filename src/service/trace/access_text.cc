// SPDX-License-Identifier: Apache-2.0
#include "service/trace/access_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace cairn {
namespace {

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

TraceEvent TextAccess::take_part() {
  TraceEvent event;
  event.time_ns = time_ns;
  event.offset = offset;
  event.length = static_cast<std::uint32_t>(std::min(length, kTransferBytesMax));
  event.file = file;
  event.process = process;
  event.kind = is_write ? TraceKind::kWrite : TraceKind::kReadMiss;
  offset += event.length;
  length -= event.length;
  return event;
}

std::optional<std::uint64_t> parse_whole(std::string_view text) {
  return parse_number<std::uint64_t>(text);
}

std::optional<std::int64_t> parse_signed(std::string_view text) {
  return parse_number<std::int64_t>(text);
}

std::optional<std::uint64_t> parse_seconds(std::string_view text) {
  const auto seconds = parse_number<double>(text);
  if (!seconds || !(*seconds >= 0 && *seconds < 9.2e9)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(*seconds * 1e9));
}

}  // namespace cairn
