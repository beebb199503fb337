// SPDX-License-Identifier: Apache-2.0
//
// Reading replies of a service without trusting their shape: a missing or wrong field is its empty
// value.
//
// Thread safety: pure functions. Ownership: results are values, arrays and objects refer to the
// reply.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace cairn::cli {

inline uint64_t unsigned_field(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || !found->is_number()) return 0;
  if (found->is_number_unsigned()) return found->get<uint64_t>();
  const auto value = found->get<double>();
  return value > 0 ? static_cast<uint64_t>(value) : 0;
}

inline double number_field(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

inline std::string text_field(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

inline bool bool_field(const nlohmann::json& object, const char* key, bool absent) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_boolean() ? found->get<bool>() : absent;
}

// An array or object member; an empty array when it is missing.
inline const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kEmpty = nlohmann::json::array();
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_structured() ? *found : kEmpty;
}

}  // namespace cairn::cli
