// SPDX-License-Identifier: Apache-2.0
// Status and Result<T>: how functions outside the hot path say what went wrong.
//
// A code is chosen by what the caller should do. The hot path returns a byte count or -errno as the
// kernel does, because its caller is a POSIX call.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace cairn {

enum class StatusCode : std::uint8_t {
  kOk = 0,
  kRetry,         // try the same call again at once
  kUnavailable,   // back off, then try again (peer gone, device error)
  kExhausted,     // a bounded resource is full: go another way
  kInvalid,       // fix the input
  kNotFound,      // the named thing does not exist
  kDenied,        // not permitted
  kExists,        // the named thing exists already
  kIncompatible,  // version or layout mismatch
  kBug,           // a broken invariant
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message, int error_number = 0)
      : code_(code), error_number_(error_number), message_(std::move(message)) {}

  static Status ok() { return {}; }
  // Prefixes `what` and appends the text of `error_number` (positive errno).
  static Status from_errno(int error_number, const std::string& what);

  bool is_ok() const { return code_ == StatusCode::kOk; }
  explicit operator bool() const { return is_ok(); }
  StatusCode code() const { return code_; }
  int error_number() const { return error_number_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  int error_number_ = 0;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  // Requires: an error.
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    CAIRN_DCHECK(!status_.is_ok());
  }

  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }
  // Requires: is_ok().
  T& value() {
    CAIRN_DCHECK(is_ok());
    return *value_;
  }
  const T& value() const {
    CAIRN_DCHECK(is_ok());
    return *value_;
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace cairn

// Returns from the enclosing function when `expression` (a Status) is not ok.
#define CAIRN_RETURN_IF_ERROR(expression)                                       \
  do {                                                                          \
    if (::cairn::Status cairn_status_ = (expression); !cairn_status_.is_ok()) { \
      return cairn_status_;                                                     \
    }                                                                           \
  } while (false)
