// SPDX-License-Identifier: Apache-2.0
#include "service/treatment/generations.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/check.h"

namespace cairn::node {
namespace {

constexpr std::string_view kNumber = "{n}";

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

}  // namespace

std::optional<Generation> generation_of(const FileRule& rule, const std::string& path) {
  const std::size_t mark = rule.pattern.find(kNumber);
  if (mark == std::string::npos) return std::nullopt;
  const std::string head = rule.pattern.substr(0, mark);
  const std::string tail = rule.pattern.substr(mark + kNumber.size());
  const std::size_t name = rule.pattern.find('/') == std::string::npos ? path.rfind('/') + 1 : 0;
  // Each run of digits may be the number: what is before and after it decides.
  for (std::size_t at = name; at < path.size(); ++at) {
    if (!is_digit(path[at]) || (at > name && is_digit(path[at - 1]))) continue;
    std::size_t past = at;
    while (past < path.size() && is_digit(path[past])) ++past;
    // Longer numbers than any counter are names.
    if (past - at > 18 || (path[at] == '0' && past - at > 1)) continue;
    const std::string before = path.substr(name, at - name);
    if (fnmatch(head.c_str(), before.c_str(), 0) != 0) continue;
    if (fnmatch(tail.c_str(), path.substr(past).c_str(), 0) != 0) continue;
    CAIRN_CHECK(past > at);
    return Generation{path.substr(0, at), std::stoull(path.substr(at, past - at)),
                      path.substr(past)};
  }
  return std::nullopt;
}

}  // namespace cairn::node
