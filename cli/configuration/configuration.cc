// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/configuration.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/size_text.h"
#include "cli/configuration/draft.h"
#include "cli/configuration/machine_settings.h"
#include "cli/configuration/option_table.h"
#include "cli/configuration/setting_layers.h"
#include "cli/node/run_directory.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/paths.h"
#include "policy/rules/rule_conflicts.h"
#include "policy/rules/schema_file.h"

namespace cairn::cli {
namespace {

// Resolves one configuration: applies the settings of all layers, then resolves what waited.
class Resolver {
 public:
  Resolver(const CommandLineSettings& command_line, ConfigurationScope scope,
           const MachineRoots& roots)
      : command_line_(command_line), scope_(scope), draft_(roots) {}

  Configuration resolve() {
    SettingLayers layers = read_layers(command_line_);
    draft_.problems = std::move(layers.problems);
    resolved_rules_ = std::move(layers.resolved_rules);
    for (const Setting& setting : layers.settings) {
      if (!concerns(*setting.option)) continue;
      draft_.sources[setting.option->name] = setting.source;
      setting.option->access.set(setting, draft_);
    }
    node().buffer_directories = check_directories("buffer.directories", draft_.buffer, draft_);
    if (scope_ == ConfigurationScope::kNode) {
      resolve_node();
    } else {
      resolve_run();
    }
    if (!draft_.problems.empty()) fail();
    // Nobody lists the few options of a run.
    if (scope_ == ConfigurationScope::kNode) list_resolved();
    return std::move(draft_.configuration);
  }

 private:
  NodeConfig& node() { return draft_.configuration.node; }

  bool concerns(const Option& option) const {
    return scope_ == ConfigurationScope::kNode || option.hot_changeable;
  }

  bool is_set(std::string_view option) const { return draft_.sources.count(option) != 0; }

  void resolve_node() {
    resolve_name();
    node().tiers = draft_.tiers.resolve(node().buffer_directories);
    if (!draft_.tiers.source().empty()) draft_.sources["tiers"] = draft_.tiers.source();
    resolve_ram(draft_);
    resolve_durability(draft_);
    node().scratch_directories = check_directories("buffer.scratch", draft_.scratch, draft_);
    resolve_swap(draft_);
    resolve_remembered(draft_);
    resolve_schema();
    check_rules_of_node();
    check_contradictions();
  }

  void resolve_run() {
    Configuration& configuration = draft_.configuration;
    configuration.run_scratch = check_directories("buffer.scratch", draft_.scratch, draft_);
    resolve_schema();
    if (is_set("buffer.mode")) configuration.run_mode = node().mode;
    if (is_set("flush.trigger")) configuration.run_trigger = node().trigger;
    if (is_set("durability.level")) configuration.run_durability = draft_.durability;
    if (is_set("placement.policy")) configuration.run_policy = node().placement_policy;
  }

  void resolve_name() {
    node().name = draft_.name ? draft_.name->text : option_named("node.name").default_text;
    try {
      check_node_name(node().name);
      const NodePaths paths = node_paths(node().name);
      node().run_root = paths.run_root;
      node().node_directory = paths.directory;
    } catch (const Failure& failure) {
      draft_.complain(draft_.name ? draft_.name->source : "node.name",
                      fmt::format("{}; {}", failure.what(), failure.remedy()));
    }
    node().private_node = node().name.rfind("run-", 0) == 0;
  }

  // The service does not read the schema: its command has read and checked the rules before.
  void resolve_schema() {
    std::string& file = node().schema_file;
    if (draft_.schema && !draft_.schema->text.empty()) file = absolute_path(draft_.schema->text);
    ParsedSchema schema;
    if (resolved_rules_) {
      schema =
          parse_schema_text(*resolved_rules_, command_line_.config_file, SchemaOrigin::kResolved);
    } else if (!file.empty() && ::access(file.c_str(), R_OK) != 0) {
      draft_.complain(draft_.schema->source,
                      fmt::format("schema: {}: {}", file, std::strerror(errno)));
    } else if (!file.empty()) {
      schema = load_schema(file);
    }
    add_problems(schema.problems);
    node().rules = std::move(schema.rules);
  }

  void check_rules_of_node() {
    std::vector<TierCapacity> tiers;
    if (node().ram_capacity_bytes > 0) tiers.push_back({"ram", node().ram_capacity_bytes});
    for (const FileTierConfig& tier : node().tiers)
      tiers.push_back({tier.name, tier.capacity_bytes});
    add_problems(check_rules(node().rules, tiers));
  }

  void add_problems(const std::vector<std::string>& problems) {
    draft_.problems.insert(draft_.problems.end(), problems.begin(), problems.end());
  }

  // A contradiction is the mistake of the later of two options.
  void check_contradictions() {
    if (node().evict_low_percent >= node().evict_high_percent) {
      draft_.complain(
          draft_.sources[is_set("evict.high_percent") ? "evict.high_percent" : "evict.low_percent"],
          fmt::format("evict.low_percent ({}) must be below evict.high_percent ({})",
                      node().evict_low_percent, node().evict_high_percent));
    }
    if (node().huge_pages == HugePages::kHugetlb && node().ram_capacity_bytes == 0) {
      draft_.complain(draft_.sources["ram.huge_pages"],
                      "ram.huge_pages is hugetlb, but ram.capacity is 0: there is no RAM tier");
    }
  }

  [[noreturn]] void fail() const {
    const std::vector<std::string>& problems = draft_.problems;
    std::string message = problems.size() == 1
                              ? "the configuration has a mistake:"
                              : fmt::format("the configuration has {} mistakes:", problems.size());
    for (const std::string& text : problems) message += "\n  " + text;
    throw Failure(message, "docs/configuration.md and `cairn config docs` list all options");
  }

  void list_resolved() {
    for (const Option& option : option_table()) {
      const auto source = draft_.sources.find(option.name);
      node().resolved.push_back({std::string(option.name), value_text(option, draft_.configuration),
                                 source == draft_.sources.end() ? "default" : source->second});
    }
  }

  const CommandLineSettings& command_line_;
  const ConfigurationScope scope_;
  Draft draft_;
  std::optional<std::string> resolved_rules_;
};

}  // namespace

Configuration resolve_configuration(const CommandLineSettings& command_line,
                                    ConfigurationScope scope, const MachineRoots& roots) {
  return Resolver(command_line, scope, roots).resolve();
}

}  // namespace cairn::cli
