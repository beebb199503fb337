// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/array_hint_option.h"

#include <fmt/format.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "policy/arrays/array_hint.h"

namespace cairn::cli {
namespace {

constexpr const char* kWildcards = "*?[\\";

// A path of which a pattern follows, as a pattern of that path alone.
std::string escaped(const std::string& path) {
  std::string pattern;
  for (const char letter : path) {
    if (std::strchr(kWildcards, letter) != nullptr) pattern += '\\';
    pattern += letter;
  }
  return pattern;
}

// As the node sees the file, without links: the whole path where the file exists. Otherwise, as for
// a pattern, the directories that exist and have no wildcard.
std::string whole_path(const std::string& file) {
  if (file.find('/') == std::string::npos) return file;
  std::array<char, PATH_MAX> resolved{};
  if (::realpath(file.c_str(), resolved.data()) != nullptr) return resolved.data();
  const bool is_absolute = file.front() == '/';
  const std::string first = is_absolute ? "/" : ".";
  if (::realpath(first.c_str(), resolved.data()) == nullptr) return file;
  std::string there = resolved.data();
  std::size_t rest = file.find_first_not_of('/');
  while (rest != std::string::npos) {
    const std::size_t slash = file.find('/', rest);
    const std::string name = file.substr(0, slash);
    if (slash == std::string::npos || name.find_first_of(kWildcards) != std::string::npos ||
        ::realpath(name.c_str(), resolved.data()) == nullptr)
      break;
    there = resolved.data();
    rest = file.find_first_not_of('/', slash);
  }
  const std::string behind = rest == std::string::npos ? "" : file.substr(rest);
  if (behind.find_first_of(kWildcards) != std::string::npos) there = escaped(there);
  return there + (there.ends_with('/') ? "" : "/") + behind;
}

}  // namespace

std::vector<std::string> take_array_hints(const std::vector<std::string>& texts) {
  std::vector<std::string> taken;
  for (const std::string& text : texts) {
    auto hint = arrays::parse_array_hint(text);
    if (!hint)
      throw Failure(fmt::format("--array \"{}\": {}", text, hint.status().message()),
                    "docs/arrays.md has examples");
    if (const Status status = hint->check(); !status) {
      say(fmt::format("warning: --array \"{}\" is left out: {}", text, status.message()));
      continue;
    }
    hint->file = whole_path(hint->file);
    taken.push_back(arrays::text_of(*hint));
  }
  return taken;
}

}  // namespace cairn::cli
