// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cerrno>
#include <cstring>

namespace cairn {
namespace {

StatusCode code_for(int error_number) {
  switch (error_number) {
    case EINTR:
    case EAGAIN:
      return StatusCode::kRetry;
    case ENOENT:
      return StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return StatusCode::kDenied;
    case EEXIST:
      return StatusCode::kExists;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      return StatusCode::kExhausted;
    case EINVAL:
      return StatusCode::kInvalid;
    default:
      return StatusCode::kUnavailable;
  }
}

}  // namespace

Status Status::from_errno(int error_number, const std::string& what) {
  char buffer[128];
  const char* text = strerror_r(error_number, buffer, sizeof buffer);
  return Status(code_for(error_number), what + ": " + text, error_number);
}

}  // namespace cairn
