// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/config_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "base/nearest_name.h"
#include "cli/configuration/option_table.h"
#include "policy/rules/yaml_documents.h"

namespace cairn::cli {
namespace {

constexpr size_t kConfigFileSizeMax = size_t{1} << 20;

// What Cairn itself appends to the resolved configuration of a node, so that the service
// and `cairn config show --node` still know where each value came from.
constexpr const char* kProvenanceKey = "resolved_from";
constexpr const char* kRulesKey = "resolved_rules";

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  ConfigFile read(const std::string& text) {
    try {
      const YAML::Node root = YAML::Load(text);
      if (root.IsMap()) {
        read_root(root);
      } else if (!root.IsNull()) {
        problem(root, "a map of options is expected, such as \"ram: {capacity: 4G}\"");
      }
      if (const auto line = line_of_second_document(text)) {
        file_.problems.push_back(fmt::format(
            "{}:{}: another document begins here; put all options into one", path_, *line));
      }
    } catch (const YAML::ParserException& error) {
      file_.problems.push_back(
          fmt::format("{}:{}: not valid YAML: {}", path_, error.mark.line + 1, error.msg));
    }
    apply_provenance();
    return std::move(file_);
  }

 private:
  std::string place(const YAML::Node& node) const {
    return fmt::format("{}:{}", path_, node.Mark().line + 1);
  }

  void problem(const YAML::Node& node, const std::string& text) {
    file_.problems.push_back(place(node) + ": " + text);
  }

  void unknown_key(const YAML::Node& key, const std::string& group,
                   const std::vector<std::string_view>& known) {
    const std::string_view nearest = nearest_name(key.Scalar(), known);
    const std::string where = group.empty() ? "" : " in " + group;
    const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
    problem(key, fmt::format("unknown key \"{}\"{}{}", key.Scalar(), where, hint));
  }

  // Calls `use` for each pair of a map whose key is a scalar that was not there before.
  template <typename Use>
  void for_each_key(const YAML::Node& map, const std::string& group, Use use) {
    std::set<std::string> seen;
    for (const auto& pair : map) {
      if (!pair.first.IsScalar()) {
        problem(pair.first, "a key must be a word");
      } else if (!seen.insert(pair.first.Scalar()).second) {
        problem(pair.first, fmt::format("\"{}\" is given twice{}", pair.first.Scalar(),
                                        group.empty() ? "" : " in " + group));
      } else {
        use(pair.first, pair.second);
      }
    }
  }

  void read_root(const YAML::Node& root) {
    std::map<std::string_view, std::vector<std::string_view>> groups;
    std::vector<std::string_view> top_level;
    for (const Option& option : option_table()) {
      const size_t dot = option.name.find('.');
      const std::string_view first = option.name.substr(0, dot);
      if (dot != std::string_view::npos) groups[first].push_back(option.name.substr(dot + 1));
      if (top_level.empty() || top_level.back() != first) top_level.push_back(first);
    }
    for_each_key(root, "", [&](const YAML::Node& key, const YAML::Node& value) {
      const std::string& name = key.Scalar();
      if (name == kProvenanceKey) {
        read_provenance(value);
      } else if (name == kRulesKey && value.IsScalar()) {
        file_.resolved_rules = value.Scalar();
        file_.has_resolved_rules = true;
      } else if (const auto group = groups.find(name); group != groups.end()) {
        read_group(name, value, group->second);
      } else if (const Option* option = find_option(name);
                 option != nullptr && name.find('.') == std::string::npos) {
        read_option(*option, key, value);
      } else {
        unknown_root_key(key, top_level);
      }
    });
  }

  // "ram.capacity: 4G" is a natural slip, and "capacity: 4G" without its group another.
  void unknown_root_key(const YAML::Node& key, const std::vector<std::string_view>& top_level) {
    if (const size_t dot = key.Scalar().find('.');
        dot != std::string::npos && find_option(key.Scalar()) != nullptr) {
      problem(key, fmt::format("write \"{}\" as key \"{}\" inside \"{}:\"", key.Scalar(),
                               key.Scalar().substr(dot + 1), key.Scalar().substr(0, dot)));
      return;
    }
    unknown_key(key, "", top_level);
  }

  void read_group(const std::string& group, const YAML::Node& value,
                  const std::vector<std::string_view>& known) {
    if (!value.IsMap()) {
      problem(value, fmt::format("\"{}\" is a group of options: {}: {{{}: ...}}", group, group,
                                 known.front()));
      return;
    }
    for_each_key(value, group, [&](const YAML::Node& key, const YAML::Node& entry) {
      const Option* option = find_option(group + "." + key.Scalar());
      if (option == nullptr) {
        unknown_key(key, group, known);
      } else {
        read_option(*option, key, entry);
      }
    });
  }

  void read_option(const Option& option, const YAML::Node& key, const YAML::Node& value) {
    Setting setting;
    setting.option = &option;
    setting.source = place(key);
    if (value.IsScalar()) {
      setting.items.push_back({value.Scalar(), "", place(key)});
    } else if (value.IsNull()) {
      problem(key, fmt::format("{} has no value; leave the key out for the default", option.name));
      return;
    } else if (!is_list(option.type)) {
      problem(key, fmt::format("{} takes one value ({})", option.name, unit_of(option)));
      return;
    } else if (!value.IsSequence()) {
      problem(key, fmt::format("{} takes a list", option.name));
      return;
    } else {
      for (const YAML::Node& item : value) read_item(option, item, &setting);
    }
    file_.settings.push_back(std::move(setting));
  }

  void read_item(const Option& option, const YAML::Node& item, Setting* setting) {
    if (item.IsScalar()) {
      setting->items.push_back({item.Scalar(), "", place(item)});
    } else if (item.IsMap() && option.type == OptionType::kTierList) {
      read_tier(item, setting);
    } else {
      problem(item,
              fmt::format("{}: {}", option.name,
                          option.type == OptionType::kTierList
                              ? "each tier is {name: ..., directory: ..., capacity: ...}, and may "
                                "have durable: true"
                              : "each entry of the list is one text"));
    }
  }

  void read_tier(const YAML::Node& tier, Setting* setting) {
    static const std::vector<std::string_view> kKeys = {"name", "directory", "capacity", "durable"};
    std::map<std::string, std::string> fields;
    for_each_key(tier, "tiers", [&](const YAML::Node& key, const YAML::Node& value) {
      if (std::find(kKeys.begin(), kKeys.end(), key.Scalar()) == kKeys.end()) {
        unknown_key(key, "tiers", kKeys);
        fields.emplace(key.Scalar(), "");
      } else if (!value.IsScalar()) {
        problem(key, fmt::format("{} of a tier takes one value", key.Scalar()));
        fields.emplace(key.Scalar(), "");
      } else {
        fields.emplace(key.Scalar(), value.Scalar());
      }
    });
    bool complete = true;
    for (const char* needed : {"directory", "capacity"}) {
      // A misspelt key was reported already; that it is missing as well would be noise.
      const bool misspelt = fields.size() > fields.count("name") + fields.count("directory") +
                                                fields.count("capacity") + fields.count("durable");
      if (fields.count(needed) == 0 && !misspelt) {
        problem(tier, fmt::format("a tier needs a {}", needed));
      }
      complete = complete && fields.count(needed) == 1 && !fields[needed].empty();
    }
    const std::string durable = fields.count("durable") == 0 ? "false" : fields["durable"];
    if (durable != "true" && durable != "false") {
      problem(tier, fmt::format("durable of a tier is true or false, not \"{}\"", durable));
      return;
    }
    if (!complete) return;
    std::string text = fields["directory"] + ":" + fields["capacity"];
    if (durable == "true") text += TierSettings::kDurableSuffix;
    setting->items.push_back({text, fields["name"], place(tier)});
  }

  void read_provenance(const YAML::Node& value) {
    if (!value.IsMap()) return;
    for (const auto& pair : value) {
      if (pair.first.IsScalar() && pair.second.IsScalar()) {
        provenance_[pair.first.Scalar()] = pair.second.Scalar();
      }
    }
  }

  void apply_provenance() {
    for (Setting& setting : file_.settings) {
      const auto found = provenance_.find(std::string(setting.option->name));
      if (found != provenance_.end()) setting.source = found->second;
    }
  }

  std::string path_;
  ConfigFile file_;
  std::map<std::string, std::string> provenance_;
};

}  // namespace

ConfigFile parse_config_text(const std::string& text, const std::string& path) {
  return Reader(path).read(text);
}

ConfigFile load_config_file(const std::string& path) {
  const auto failed = [&path](const std::string& why) {
    ConfigFile file;
    file.problems.push_back(path + ": " + why);
    return file;
  };
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return failed(std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return failed("is a directory");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return failed(std::strerror(errno));
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() <= kConfigFileSizeMax &&
         (stream.read(buffer.data(), buffer.size()), stream.gcount() > 0)) {
    text.append(buffer.data(), static_cast<size_t>(stream.gcount()));
  }
  if (text.size() > kConfigFileSizeMax)
    return failed("is larger than 1 MiB; is it a configuration?");
  return parse_config_text(text, path);
}

}  // namespace cairn::cli
