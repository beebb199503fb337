// SPDX-License-Identifier: Apache-2.0
//
// `cairn explain PATH`: which byte ranges of a file are in which tier, in which state, since when,
// and why.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/size_text.h"
#include "cli/commands/arrays_command.h"
#include "cli/commands/node_commands.h"
#include "cli/node/json_fields.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

std::string head(const std::string& path, const Json& reply) {
  std::string text = fmt::format("{}: {}", path, format_size(unsigned_field(reply, "size")));
  const uint64_t dirty = unsigned_field(reply, "dirty_bytes");
  if (dirty == 0) {
    text += ", stored";
  } else {
    text += fmt::format(", {} of it not stored yet", format_size(dirty));
  }
  if (text_field(reply, "mode") == "through") {
    text +=
        ", read and written through (it is mapped, or open in a program that cannot or is not to "
        "be "
        "buffered)";
  }
  return text + "\n";
}

// "bytes 0 to 65536: " for what a rule says of a part of the file.
std::string part_text(const Json& rule) {
  if (!rule.contains("begin")) return "";
  const std::string end =
      rule.contains("end") ? std::to_string(unsigned_field(rule, "end")) : "the end";
  return fmt::format("bytes {} to {}: ", unsigned_field(rule, "begin"), end);
}

// One line per property that is not as a node without rules has it.
std::string treatment_text(const Json& reply) {
  std::string text;
  for (const Json& rule : member(reply, "rules")) {
    const std::string name = printable(text_field(rule, "rule"));
    const Json value = rule.value("value", Json());
    text += fmt::format(
        "{}{} {}: rule {}{}\n", part_text(rule), printable(text_field(rule, "property")),
        value.is_string() ? printable(value.get<std::string>()) : value.dump(),
        name.empty() ? printable(text_field(rule, "pattern")) : name,
        text_field(rule, "source").empty() ? ""
                                           : " (" + printable(text_field(rule, "source")) + ")");
  }
  return text;
}

std::string canonical_path(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) == nullptr ? std::string() : std::string(resolved);
}

}  // namespace

std::string explain_text(const std::string& path, const Json& reply) {
  if (!bool_field(reply, "known", false)) {
    return fmt::format("{}: not buffered on this node; every byte is on the backing store\n",
                       path) +
           treatment_text(reply);
  }
  std::string text = head(path, reply) + treatment_text(reply);
  std::vector<std::vector<std::string>> rows = {
      {"from", "to", "bytes", "tier", "state", "for", "why"}};
  for (const Json& range : member(reply, "ranges")) {
    const uint64_t begin = unsigned_field(range, "begin");
    const uint64_t end = unsigned_field(range, "end");
    rows.push_back({std::to_string(begin), std::to_string(end),
                    format_size(end > begin ? end - begin : 0),
                    printable(text_field(range, "tier")), printable(text_field(range, "state")),
                    format_duration(number_field(range, "since_seconds")),
                    printable(text_field(range, "reason"))});
  }
  if (rows.size() == 1) {
    text += "nothing of it is in a tier now\n";
  } else {
    text += format_table(rows, "rrrllrl") + "all other ranges are on the backing store alone\n";
  }
  if (bool_field(reply, "ranges_truncated", false))
    text += "there are more ranges than listed here\n";
  return text;
}

int explain_file(const ExplainOptions& options) {
  if (!options.dataset.empty()) {
    const Json datasets = datasets_of(options.path, options.node, options.dataset, false);
    if (options.json) {
      print(datasets.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    } else {
      for (const Json& dataset : datasets) print(dataset_text(dataset));
    }
    return kExitOk;
  }
  struct stat status{};
  if (::stat(options.path.c_str(), &status) != 0) {
    throw Failure(fmt::format("{}: {}", options.path, std::strerror(errno)),
                  "name an existing file");
  }
  if (!S_ISREG(status.st_mode)) {
    throw Failure(fmt::format("{} is not a regular file", options.path),
                  "only regular files are buffered");
  }
  ControlClient client(select_node(options.node));
  const Json reply = client.request({{"command", "explain"},
                                     {"device", static_cast<uint64_t>(status.st_dev)},
                                     {"inode", static_cast<uint64_t>(status.st_ino)},
                                     {"path", canonical_path(options.path)},
                                     {"size", static_cast<uint64_t>(status.st_size)}});
  print(options.json ? reply.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                     : explain_text(printable(options.path), reply));
  return kExitOk;
}

}  // namespace cairn::cli
