// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/array_hint_option.h"

#include <fmt/format.h>

#include <climits>
#include <cstdlib>

#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"
#include "policy/arrays/array_hint.h"

namespace cairn::cli {
namespace {

// As the node sees the file; a pattern, or a file that is to come, has no real path.
std::string whole_path(const std::string& file) {
  if (file.find('/') == std::string::npos) return file;
  char resolved[PATH_MAX];
  return ::realpath(file.c_str(), resolved) == nullptr ? absolute_path(file)
                                                       : std::string(resolved);
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
