// SPDX-License-Identifier: Apache-2.0
// Who keeps the names of the log's files, as far as the files need to know.
//
// Thread safety: any thread, without a file's lock.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/object_key.h"
#include "base/status.h"
#include "service/durable_log/log_record.h"

namespace cairn::node {

struct LogAttempt {
  enum class Outcome : std::uint8_t {
    kLogged,      // all of it is in the log once `upto` is durable
    kNeedsStore,  // only the store can make it durable
    kFull,        // the log has no room
    kFailed,      // the log is out of order
  };
  Outcome outcome = Outcome::kNeedsStore;
  durable::Lsn upto = durable::Lsn::kNone;
};

// The log counts as failed when its device has not answered for so long.
inline constexpr auto kCommitMax = std::chrono::seconds(30);

// An append has failed. kInvalid: the log has no record for it.
inline LogAttempt::Outcome outcome_of(const Status& status) {
  if (status.code() == StatusCode::kInvalid) return LogAttempt::Outcome::kNeedsStore;
  return status.code() == StatusCode::kExhausted ? LogAttempt::Outcome::kFull
                                                 : LogAttempt::Outcome::kFailed;
}

class NameKeeper {
 public:
  // The file's data is about to leave the log for the store: a name that the log alone has of it
  // has to be durable there. Returns 0 or -errno.
  virtual int store_names_of(const ObjectKey& file) = 0;

 protected:
  ~NameKeeper() = default;
};

}  // namespace cairn::node
