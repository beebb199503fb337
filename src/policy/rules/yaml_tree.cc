// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <utility>

#include "policy/rules/yaml_documents.h"

namespace cairn {
namespace {

constexpr const char* kListName = "rules";
constexpr const char* kItemName = "rule";
constexpr const char* kForm = "a schema is \"rules:\" with a list of rules below it";

// Nodes that the library made up itself have no place; they belong to the first line.
unsigned line_of(const YAML::Mark& mark) {
  return mark.line >= 0 ? static_cast<unsigned>(mark.line) + 1 : 1;
}
unsigned line_of(const YAML::Node& node) { return line_of(node.Mark()); }

class Converter {
 public:
  SchemaDocument convert(const std::string& text) {
    try {
      const YAML::Node root = YAML::Load(text);
      const std::optional<unsigned> more = line_of_second_document(text);
      document_.well_formed = true;
      document_.root = {EntryKind::kKey, kListName, "", 1, {}};
      if (more) problem(*more, "another document begins here; put all rules into one list");
      convert_root(root);
    } catch (const YAML::Exception& error) {
      document_.well_formed = false;
      problem(line_of(error.mark), "not valid YAML: " + error.msg + hint(error.msg));
    }
    return std::move(document_);
  }

 private:
  void problem(unsigned line, std::string text) {
    document_.problems.push_back({line, std::move(text)});
  }

  // "path: *.h5" is the slip that everybody makes once: to YAML, a star begins an alias.
  static std::string hint(const std::string& message) {
    const bool about_alias =
        message.find("anchor") != std::string::npos || message.find("alias") != std::string::npos;
    return about_alias ? "; put a pattern that begins with * in quotes: path: \"*.h5\"" : "";
  }

  void convert_root(const YAML::Node& root) {
    if (!root.IsMap()) {
      problem(line_of(root), kForm);
      return;
    }
    bool seen = false;
    for (const auto& pair : root) {
      if (!pair.first.IsScalar() || pair.first.Scalar() != kListName) {
        const std::string name = pair.first.IsScalar() ? pair.first.Scalar() : "";
        problem(line_of(pair.first), fmt::format("unknown key \"{}\"; {}", name, kForm));
      } else if (seen) {
        problem(line_of(pair.first), "\"rules\" is given twice; write one list");
      } else {
        seen = true;
        document_.root.line = line_of(pair.first);
        convert_list(pair.first, pair.second);
      }
    }
    if (!seen && document_.problems.empty()) problem(line_of(root), kForm);
  }

  void convert_list(const YAML::Node& key, const YAML::Node& list) {
    if (list.IsNull()) return;
    if (!list.IsSequence()) {
      problem(line_of(key), "\"rules\" takes a list: each rule begins with \"- \"");
      return;
    }
    for (const YAML::Node& item : list) {
      if (!item.IsMap()) {
        problem(line_of(item), "each rule is a map, such as {path: \"*.h5\", mode: scratch}");
        continue;
      }
      SchemaEntry rule{EntryKind::kKey, kItemName, "", line_of(item), {}};
      if (!convert_map(item, 1, &rule)) return;
      document_.root.entries.push_back(std::move(rule));
    }
  }

  // Returns: false when there is too much of it. Aliases can make a short text endless.
  bool convert_map(const YAML::Node& map, unsigned depth, SchemaEntry* into) {
    for (const auto& pair : map) {
      if (++entries_ > kSchemaEntriesMax || depth > kSchemaDepthMax) {
        problem(into->line, depth > kSchemaDepthMax ? "maps are nested too deeply"
                                                    : "more entries than a schema may have");
        return false;
      }
      if (!pair.first.IsScalar()) {
        problem(line_of(pair.first), "a key must be a word");
        continue;
      }
      SchemaEntry entry{EntryKind::kKey, pair.first.Scalar(), "", line_of(pair.first), {}};
      if (pair.second.IsMap()) {
        if (!convert_map(pair.second, depth + 1, &entry)) return false;
      } else if (pair.second.IsSequence()) {
        entry.is_list = true;
      } else if (pair.second.IsScalar()) {
        entry.text = pair.second.Scalar();
      }
      into->entries.push_back(std::move(entry));
    }
    return true;
  }

  SchemaDocument document_;
  unsigned entries_ = 0;
};

}  // namespace

SchemaDocument read_yaml_tree(const std::string& text) { return Converter().convert(text); }

}  // namespace cairn
