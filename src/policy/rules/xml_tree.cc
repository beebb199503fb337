// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/xml_tree.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "policy/rules/schema_xml.h"

namespace cairn {
namespace {

// What the callbacks build: the open elements, outermost first, and the finished root.
struct Builder {
  SchemaDocument document;
  std::vector<SchemaEntry> open;
  unsigned entries = 0;
};

std::string trimmed(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

void begin(void* context, const char* name, unsigned line, bool is_attribute) noexcept {
  auto* builder = static_cast<Builder*>(context);
  SchemaEntry entry;
  entry.kind = is_attribute ? EntryKind::kAttribute : EntryKind::kElement;
  entry.name = name;
  entry.line = line;
  builder->open.push_back(std::move(entry));
}

void add_text(void* context, const char* text, std::size_t size) noexcept {
  auto* builder = static_cast<Builder*>(context);
  CAIRN_CHECK(!builder->open.empty());  // text stands within an element
  builder->open.back().text.append(text, size);
}

void end(void* context) noexcept {
  auto* builder = static_cast<Builder*>(context);
  CAIRN_CHECK(!builder->open.empty());
  SchemaEntry entry = std::move(builder->open.back());
  builder->open.pop_back();
  entry.text = trimmed(entry.text);
  if (builder->open.empty()) {
    builder->document.root = std::move(entry);
  } else if (++builder->entries <= kSchemaEntriesMax) {
    builder->open.back().entries.push_back(std::move(entry));
  } else if (builder->entries == kSchemaEntriesMax + 1) {
    builder->document.problems.push_back(
        {entry.line, fmt::format("more than {} elements and attributes", kSchemaEntriesMax)});
  }
}

void add_problem(void* context, unsigned line, const char* text) noexcept {
  static_cast<Builder*>(context)->document.problems.push_back({line, text});
}

// bin/, tests/ and lib/ stand side by side, in the build as where it is installed.
std::string reader_path() {
  std::array<char, PATH_MAX> executable{};
  const ssize_t length = ::readlink("/proc/self/exe", executable.data(), executable.size() - 1);
  std::string path(executable.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  return path + "/../lib/cairn/schema_xml.so";
}

// Returns: null with the reason in `why`. The library stays for the life of the process.
CairnReadSchemaXml open_reader(std::string* why) {
  const std::string path = reader_path();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = library != nullptr ? ::dlsym(library, kReadSchemaXmlName) : nullptr;
  if (symbol == nullptr) {
    const char* error = ::dlerror();
    *why = error != nullptr ? error : path;
  }
  return reinterpret_cast<CairnReadSchemaXml>(symbol);
}

}  // namespace

SchemaDocument read_xml_tree(const std::string& text) {
  Builder builder;
  std::string why;
  static CairnReadSchemaXml reader = nullptr;
  if (reader == nullptr) reader = open_reader(&why);
  if (reader == nullptr) {
    builder.document.problems.push_back(
        {1, fmt::format("the reader of XML cannot be loaded ({}); install libxml2, or write the "
                        "schema in YAML",
                        why)});
    return std::move(builder.document);
  }
  const CairnXmlSink sink{&builder, begin, add_text, end, add_problem};
  builder.document.well_formed = reader(text.data(), text.size(), &sink);
  return std::move(builder.document);
}

}  // namespace cairn
