// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/profile_options.h"

namespace cairn::cli {

std::string remedy_for(const Status& status) {
  switch (status.code()) {
    case StatusCode::kNotFound:
      return "create it, or name another directory";
    case StatusCode::kDenied:
      return "name a directory that you may write in";
    case StatusCode::kInvalid:
      return "name a directory on a disk or a network file system; `cairn profile` alone measures "
             "the memory, too";
    case StatusCode::kExhausted:
      return "make room there, or name a directory on another device";
    case StatusCode::kUnavailable:
      return "give it more time with --seconds; if it fails again, look at the kernel's log for "
             "the "
             "device";
    default:
      return "";
  }
}

}  // namespace cairn::cli
