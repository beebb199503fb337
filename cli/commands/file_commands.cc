// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/file_commands.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/clock.h"
#include "base/nearest_name.h"
#include "base/size_text.h"
#include "cli/node/control_client.h"
#include "cli/node/drain_view.h"
#include "cli/node/json_fields.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "service/treatment/rule_json.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

bool has_wildcard(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos || text.find("{n}") != std::string::npos;
}

// A path as a pattern that matches it alone: fnmatch(3) reads some characters as more.
std::string as_pattern(const std::string& path) {
  std::string pattern;
  for (const char letter : path) {
    if (std::strchr("*?[]\\{}()", letter) != nullptr) pattern += '\\';
    pattern += letter;
  }
  return pattern;
}

// What a rule is to match for a path or pattern of the command line.
std::string pattern_of(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 && has_wildcard(path)) {
    // With a slash it is a place, and relative to here; without, it speaks of names anywhere.
    const bool is_place = path.find('/') != std::string::npos && path.front() != '/';
    return is_place ? as_pattern(fs::current_path().string()) + "/" + path : path;
  }
  const std::string whole = canonical(path, "name an existing file, or a pattern in quotes");
  return fs::is_directory(whole) ? as_pattern(whole) + "/*" : as_pattern(whole);
}

Json identity_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  return {{"device", static_cast<uint64_t>(status.st_dev)},
          {"inode", static_cast<uint64_t>(status.st_ino)},
          {"bytes", static_cast<uint64_t>(status.st_size)}};
}

constexpr std::string_view kProperties[] = {"mode",   "trigger",  "durability", "policy", "tier",
                                            "pinned", "priority", "prefetch",   "reserve"};

[[noreturn]] void fail_property(const std::string& text, const std::string& expected) {
  throw Failure(fmt::format("{}: {}", text, expected), "`cairn set --help` lists what there is");
}

template <typename Value>
Value required(const std::optional<Value>& value, const std::string& text, const char* expected) {
  if (!value) fail_property(text, expected);
  return *value;
}

void take_property(const std::string& text, FileRule* rule) {
  const size_t equals = text.find('=');
  const std::string key = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (value.empty()) fail_property(text, "write it as key=value");
  if (key == "mode") {
    rule->mode = required(buffering_mode_named(value), text,
                          "a mode is persistent-async, persistent-sync or bypass");
  } else if (key == "trigger") {
    rule->trigger = required(flush_trigger_named(value), text,
                             "a trigger is periodic, per-operation, per-file or on-exit");
  } else if (key == "durability") {
    rule->durability =
        required(durability_named(value), text, "a level of durability is node or store");
  } else if (key == "policy") {
    rule->policy = value;
  } else if (key == "tier") {
    rule->tier = value;
  } else if (key == "pinned") {
    if (value != "yes" && value != "no") fail_property(text, "pinned is yes or no");
    rule->pinned = value == "yes";
  } else if (key == "priority") {
    if (value.size() != 1 || value[0] < '0' || value[0] > '7')
      fail_property(text, "a priority is 0 (leaves first) to 7");
    rule->priority = static_cast<unsigned>(value[0] - '0');
  } else if (key == "prefetch") {
    rule->prefetch = required(node::prefetch_hint_named(value), text,
                              "a hint is normal, sequential, random, will-need or none");
  } else if (key == "reserve") {
    rule->reserve = required(parse_reservation(value), text,
                             "write a size, such as reserve=2G for the fastest tier, or a tier's "
                             "name and a size, such as reserve=nvme:10G; 0 ends it");
  } else {
    const std::string_view nearest = nearest_name(key, kProperties);
    fail_property(text, nearest.empty() ? "there is no such property"
                                        : fmt::format("did you mean {}=?", nearest));
  }
}

// Sends a rule for each path, with the files that it speaks of right now.
int send_rules(const FileSelection& files, const FileRule& properties, const char* command) {
  Json rules = Json::array();
  Json identities = Json::array();
  for (const std::string& path : named_paths(files)) {
    FileRule rule = properties;
    rule.pattern = pattern_of(path);
    rule.source = command;
    if (rule.pattern.size() > FileRule::kPatternBytesMax)
      throw Failure(
          fmt::format("{}: longer than {} bytes as a pattern", path, FileRule::kPatternBytesMax),
          "use a pattern such as '*.h5' or the directory");
    rules.push_back(node::rule_to_json(rule));
    if (!rule.pinned || has_wildcard(path)) continue;
    const auto add = [&](const std::string& file) {
      if (Json identity = identity_of(file); !identity.is_null())
        identities.push_back(std::move(identity));
    };
    for_each_file({path}, {.file = add, .directory = nullptr});
  }
  ControlClient(select_node(files.node))
      .request({{"command", "set"}, {"rules", rules}, {"files", identities}});
  return kExitOk;
}

int say_outcome(const StageOptions& options, const Json& reply, double seconds) {
  const Json& failures = member(reply, "failures");
  for (const Json& failure : failures)
    say(fmt::format("{}: {}", printable(text_field(failure, "path")),
                    printable(text_field(failure, "message"))));
  if (const uint64_t bytes = unsigned_field(reply, "bytes_no_room"); bytes != 0)
    say(fmt::format("{} did not find room in the tiers and stay on the backing store",
                    format_size(bytes)));
  const uint64_t files = unsigned_field(reply, "files");
  say(fmt::format("{} {}, {} {} in {}", files, files == 1 ? "file" : "files",
                  format_size(unsigned_field(reply, "bytes")),
                  options.in ? "staged in" : "staged out", format_duration(seconds)));
  return failures.empty() ? kExitOk : kExitNotStored;
}

}  // namespace

int set_properties(const SetOptions& options) {
  FileRule rule;
  for (const std::string& property : options.properties) take_property(property, &rule);
  return send_rules(options.files, rule, "cairn set");
}

int pin_files(const PinOptions& options) {
  FileRule rule;
  rule.pinned = options.pinned;
  if (!options.tier.empty()) rule.tier = options.tier;
  const int status = send_rules(options.files, rule, options.pinned ? "cairn pin" : "cairn unpin");
  if (!options.pinned || options.tier.empty()) return status;
  // A pin to a tier is of use when the blocks are there.
  StageOptions stage;
  stage.files = options.files;
  stage.tier = options.tier;
  return stage_files(stage);
}

int stage_files(const StageOptions& options) {
  Json paths = Json::array();
  uint64_t total = 0;
  const auto add = [&](const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0) total += static_cast<uint64_t>(status.st_size);
    paths.push_back(path);
  };
  for_each_file(named_paths(options.files), {.file = add, .directory = nullptr});
  Json request = {{"command", options.in ? "stage-in" : "stage-out"}, {"paths", paths}};
  if (!options.tier.empty()) request["tier"] = options.tier;
  const double started = monotonic_seconds();
  DrainView view(options.in ? "staging in" : "staging out");
  ControlClient client(select_node(options.files.node));
  const Json reply = client.request(request, [&](const Json& progress) {
    const uint64_t done = unsigned_field(progress, "bytes_done");
    DrainProgress shown;
    shown.remaining_bytes = total - std::min(total, done);
    shown.remaining_files =
        unsigned_field(progress, "files_total") - unsigned_field(progress, "files_done");
    shown.rate_bytes_per_second =
        static_cast<double>(done) / (monotonic_seconds() - started + 1e-3);
    shown.file = printable(text_field(progress, "file"));
    view.update(shown);
    return true;
  });
  view.clear();
  return say_outcome(options, reply, monotonic_seconds() - started);
}

}  // namespace cairn::cli
