// SPDX-License-Identifier: Apache-2.0
// Callbacks that do nothing but ask the connector below, made from the function that asks it.
//
// A callback and its function differ in one parameter, the connector's id, which stands behind the
// object, or behind the location or type where one follows the object:
//
//   callback  herr_t read(void* attribute, hid_t type, void* buffer, ...)
//   function  herr_t H5VLattr_read(void* attribute, hid_t connector, hid_t type, ...)
//
// So `.read = Forward<&Hdf5Functions::H5VLattr_read>()` is a whole callback: its parameters are
// those of the member that it initialises.
//
// Thread safety: as open_file.h.
#pragma once

#include <tuple>
#include <type_traits>

#include "frontends/hdf5/callback.h"

namespace cairn::hdf5 {

template <typename First>
inline constexpr bool kStandsBeforeConnector =
    std::is_same_v<First, const H5VL_loc_params_t*> || std::is_same_v<First, H5I_type_t>;

// The request, which is the last parameter of most callbacks; null for the others.
template <typename... Parameters>
void** request_of(const Parameters&... parameters) {
  const auto& last = std::get<sizeof...(Parameters) - 1>(std::tie(parameters...));
  if constexpr (std::is_same_v<std::decay_t<decltype(last)>, void**>) {
    return last;
  } else {
    return nullptr;
  }
}

template <auto Function, typename Result, typename First, typename... Rest>
Result ask_lower(const Object& object, First first, Rest... rest) {
  const auto function = object.file->library.call.*Function;
  const hid_t connector = object.file->connector;
  const RequestScope scope(*object.file, request_of(first, rest...));
  if constexpr (kStandsBeforeConnector<First>) {
    return function(object.lower, first, connector, rest...);
  } else {
    return function(object.lower, connector, first, rest...);
  }
}

// The same call below.
template <auto Function>
struct Forward {
  template <typename Result, typename... Parameters>
  using Callback = Result (*)(void*, Parameters...);

  template <typename Result, typename... Parameters>
  // NOLINTNEXTLINE(google-explicit-constructor): it becomes the member that it initialises.
  constexpr operator Callback<Result, Parameters...>() const {
    return &call<Result, Parameters...>;
  }

  template <typename Result, typename... Parameters>
  static Result call(void* object, Parameters... parameters) {
    if (object == nullptr) return failure<Result>();
    return ask_lower<Function, Result>(*object_of(object), parameters...);
  }
};

// The same call below, which answers with a new object.
template <auto Function, Kind Opened = Kind::kOther>
struct Opening {
  template <typename... Parameters>
  using Callback = void* (*)(void*, Parameters...);

  template <typename... Parameters>
  // NOLINTNEXTLINE(google-explicit-constructor): it becomes the member that it initialises.
  constexpr operator Callback<Parameters...>() const {
    return &call<Parameters...>;
  }

  template <typename... Parameters>
  static void* call(void* object, Parameters... parameters) {
    if (object == nullptr) return nullptr;
    OpenFile& file = *object_of(object)->file;
    void* lower = ask_lower<Function, void*>(*object_of(object), parameters...);
    return make_object(file, lower, Opened);
  }
};

// The same call below, with which the object ends unless it fails.
template <auto Function>
struct Closing {
  template <typename... Parameters>
  using Callback = herr_t (*)(void*, Parameters...);

  template <typename... Parameters>
  // NOLINTNEXTLINE(google-explicit-constructor): it becomes the member that it initialises.
  constexpr operator Callback<Parameters...>() const {
    return &call<Parameters...>;
  }

  template <typename... Parameters>
  static herr_t call(void* object, Parameters... parameters) {
    if (object == nullptr) return -1;
    const herr_t result = ask_lower<Function, herr_t>(*object_of(object), parameters...);
    if (result >= 0) release(object_of(object));
    return result;
  }
};

}  // namespace cairn::hdf5
