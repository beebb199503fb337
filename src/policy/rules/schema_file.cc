// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/schema_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "policy/rules/rule_conflicts.h"
#include "policy/rules/rule_reader.h"
#include "policy/rules/schema_tree.h"
#include "policy/rules/xml_tree.h"
#include "policy/rules/yaml_tree.h"

namespace cairn {
namespace {

constexpr std::size_t kMessageBytesMax = 500;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_xml(std::string_view text, std::string_view path) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '<') return true;
  return path.size() > 4 && path.substr(path.size() - 4) == ".xml";
}

// Bytes of the UTF-8 sequence that begins here, 0 when there is none (RFC 3629, section 4).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&text](std::size_t index) {
    return index < text.size() ? static_cast<unsigned char>(text[index]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                             : first >= 0xE0 && first <= 0xEF ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  const unsigned second_min = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned second_max = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (length == 0 || byte(1) < second_min || byte(1) > second_max) return 0;
  for (std::size_t index = 2; index < length; ++index) {
    if (byte(index) < 0x80 || byte(index) > 0xBF) return 0;
  }
  return length;
}

// Both parsers would drop, replace or stop at such bytes in silence.
std::optional<SchemaProblem> find_bad_byte(std::string_view text) {
  unsigned line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0) return SchemaProblem{line, "not UTF-8; save the file in that encoding"};
    const bool is_space = byte == '\t' || byte == '\n' || byte == '\r';
    if ((byte < 0x20 && !is_space) || byte == 0x7F) {
      return SchemaProblem{line, fmt::format("a control character (0x{:02X}); remove it", byte)};
    }
    if (byte == '\n' && ++line > kSchemaLinesMax) {
      return SchemaProblem{line,
                           fmt::format("more than {} lines; is it a schema?", kSchemaLinesMax)};
    }
    at += length;
  }
  return std::nullopt;
}

// The validator says the same less clearly where we object to a line ourselves.
std::vector<SchemaProblem> merged(std::vector<SchemaProblem> ours,
                                  const std::vector<SchemaProblem>& of_document) {
  std::set<unsigned> lines;
  for (const SchemaProblem& problem : ours) lines.insert(problem.line);
  for (const SchemaProblem& problem : of_document) {
    if (lines.count(problem.line) == 0) ours.push_back(problem);
  }
  // Problems of one line stay in the order in which they were found.
  std::multimap<unsigned, SchemaProblem> by_line;
  for (SchemaProblem& problem : ours) by_line.emplace(problem.line, std::move(problem));
  ours.clear();
  for (auto& [line, problem] : by_line) ours.push_back(std::move(problem));
  return ours;
}

// A message quotes the schema: it stays one line of bearable length, whatever stands there.
std::string one_line(std::string text) {
  if (text.size() > kMessageBytesMax) {
    std::size_t end = kMessageBytesMax;
    while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end) + "...";
  }
  for (char& letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte == 0x7F) letter = '?';
  }
  return text;
}

ParsedSchema with_places(std::vector<SchemaProblem> problems, const std::string& path) {
  ParsedSchema schema;
  const std::size_t count = std::min<std::size_t>(problems.size(), kSchemaProblemsMax);
  for (std::size_t index = 0; index < count; ++index) {
    schema.problems.push_back(
        fmt::format("{}:{}: {}", path, problems[index].line, one_line(problems[index].text)));
  }
  return schema;
}

// Returns: an errno, 0 when the text was read; at most one byte more than the limit.
int read_file(const std::string& path, std::string* text) {
  // A FIFO or a device is refused below; opening it must not wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return errno;
  struct stat status{};
  int error = ::fstat(descriptor, &status) != 0 ? errno : 0;
  if (error == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  if (error == 0 && !S_ISREG(status.st_mode)) error = EINVAL;
  std::array<char, 16384> buffer{};
  while (error == 0 && text->size() <= kSchemaBytesMax) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count == 0) break;
    if (count > 0) text->append(buffer.data(), static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) error = errno;
  }
  ::close(descriptor);
  return error;
}

}  // namespace

ParsedSchema parse_schema_text(const std::string& text, const std::string& path,
                               SchemaOrigin origin) {
  const bool resolved = origin == SchemaOrigin::kResolved;
  std::string_view body = text;
  if (body.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    body.remove_prefix(kByteOrderMark.size());
  }
  if (body.size() > kSchemaBytesMax) {
    return with_places({{1, "the file is larger than 1 MiB; is it a schema?"}}, path);
  }
  // A text of our own may name a source file in another encoding.
  if (!resolved) {
    if (const auto bad = find_bad_byte(body)) return with_places({*bad}, path);
  }
  const SchemaDocument document = !resolved && is_xml(body, path)
                                      ? read_xml_tree(std::string(body))
                                      : read_yaml_tree(std::string(body));
  if (!document.well_formed) return with_places(document.problems, path);
  ReadRules read = read_rules(document.root, resolved);
  std::vector<SchemaProblem> ours = std::move(read.problems);
  const std::vector<SchemaProblem> conflicts = find_conflicts(read.rules);
  ours.insert(ours.end(), conflicts.begin(), conflicts.end());
  ParsedSchema schema = with_places(merged(std::move(ours), document.problems), path);
  if (!schema.problems.empty()) return schema;
  for (PlacedRule& placed : read.rules) {
    if (placed.rule.source.empty()) placed.rule.source = fmt::format("{}:{}", path, placed.line);
    schema.rules.push_back(std::move(placed.rule));
  }
  return schema;
}

ParsedSchema load_schema(const std::string& path) {
  std::string text;
  const int error = read_file(path, &text);
  if (error == 0) return parse_schema_text(text, path);
  ParsedSchema schema;
  schema.problems.push_back(
      fmt::format("{}: {}; name a schema file", path,
                  error == EINVAL ? "is not a regular file" : std::strerror(error)));
  return schema;
}

}  // namespace cairn
