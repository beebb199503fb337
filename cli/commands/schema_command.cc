// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/schema_command.h"

#include <fmt/format.h>

#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "policy/rules/schema_file.h"

namespace cairn::cli {

int check_schemas(const std::vector<std::string>& files) {
  std::vector<std::string> problems;
  for (const std::string& file : files) {
    const ParsedSchema schema = load_schema(file);
    problems.insert(problems.end(), schema.problems.begin(), schema.problems.end());
    if (!schema.problems.empty()) continue;
    print(fmt::format("{}: {} {}, ok\n", printable(file), schema.rules.size(),
                      schema.rules.size() == 1 ? "rule" : "rules"));
  }
  if (problems.empty()) return kExitOk;
  std::string message = problems.size() == 1
                            ? "the schema has a mistake:"
                            : fmt::format("the schema has {} mistakes:", problems.size());
  for (const std::string& text : problems) message += "\n  " + printable(text);
  throw Failure(message, "docs/schemas.md explains the fields and has an example");
}

}  // namespace cairn::cli
