// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/system_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/size_text.h"

namespace cairn::profiler {

std::string read_text(const std::string& path, size_t bytes_max) {
  std::string text;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return text;
  std::array<char, 4096> buffer{};
  while (text.size() < bytes_max) {
    const size_t wanted = std::min(buffer.size(), bytes_max - text.size());
    const ssize_t count = ::read(descriptor, buffer.data(), wanted);
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  ::close(descriptor);
  return text;
}

std::string read_line(const std::string& path) {
  std::string text = read_text(path, 4096);
  text.resize(std::min(text.find('\n'), text.size()));
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.pop_back();
  return text;
}

std::optional<uint64_t> read_number(const std::string& path) {
  return parse_count(read_line(path));
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::vector<std::string_view> split_fields(std::string_view text) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return fields;
    text.remove_prefix(begin);
    const size_t end = std::min(text.find_first_of(" \t"), text.size());
    fields.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

uint64_t meminfo_bytes(std::string_view meminfo, std::string_view key) {
  for (const std::string_view line : split_lines(meminfo)) {
    const size_t place = line.find(key);
    // The files of NUMA nodes write "Node 0 MemTotal:".
    if (place == std::string_view::npos || (place > 0 && line[place - 1] != ' ')) continue;
    const auto fields = split_fields(line.substr(place + key.size()));
    return fields.empty() ? 0 : parse_count(fields.front()).value_or(0) * 1024;
  }
  return 0;
}

}  // namespace cairn::profiler
