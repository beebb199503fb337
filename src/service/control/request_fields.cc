// SPDX-License-Identifier: Apache-2.0
#include "service/control/request_fields.h"

namespace cairn::node {

std::string text_of(const Json& request, const char* field) {
  const auto found = request.find(field);
  if (found == request.end()) return {};
  if (found->is_number_integer()) return std::to_string(found->get<std::int64_t>());
  return found->is_string() ? found->get<std::string>() : std::string();
}

bool flag_of(const Json& request, const char* field, bool otherwise) {
  const auto found = request.find(field);
  return found != request.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

}  // namespace cairn::node
