// SPDX-License-Identifier: Apache-2.0
// How callbacks of a connector are written: HDF5 prescribes their parameters, of which some have
// ten.
//
//   CAIRN_HDF5_CALLBACK(herr_t, copy_link, (void* source, ...)) { ... }
//
// Thread safety: none of its own.
#pragma once

#include <type_traits>

#include "frontends/hdf5/object.h"

#define CAIRN_HDF5_CALLBACK(result, name, parameters) result name parameters

namespace cairn::hdf5 {

// The answer of a callback that has failed.
template <typename Result>
constexpr Result failure() {
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return -1;
  }
}

// For the length of a call that may leave a request behind: the call may close its own object (a
// refresh does), and the request needs the file. Without a request the call holds nothing.
class RequestScope {
 public:
  RequestScope(OpenFile& file, void** request) : file_(file), request_(request) {
    if (request_ != nullptr) hold(file_);
  }
  // A request is an object like others: what waits for it comes back through this connector.
  ~RequestScope() {
    if (request_ == nullptr) return;
    if (*request_ != nullptr) *request_ = make_object(file_, *request_, Kind::kOther);
    release(file_);
  }
  RequestScope(const RequestScope&) = delete;
  RequestScope& operator=(const RequestScope&) = delete;

 private:
  OpenFile& file_;
  void** request_;
};

}  // namespace cairn::hdf5
