// SPDX-License-Identifier: Apache-2.0
#include "service/durability/dirty_logging.h"

#include <algorithm>

namespace cairn::node {
namespace {

bool is_to_be_logged(const Object& object) {
  const bool is_lasting =
      object.handling().mode != BufferingMode::kScratch && !object.has(kObjectUnlinked);
  return is_lasting && (object.dirty_blocks.load() != 0 || object.has(kObjectTimesDirty));
}

}  // namespace

DirtyLogging log_dirty(const NodeMemory& memory, LoggedFiles& logged, const StoreFiles& files) {
  DirtyLogging result;
  durable::Lsn last = durable::Lsn::kNone;
  for (const StoreFilePtr& file : files.snapshot()) {
    if (!is_to_be_logged(memory.objects().at(file->object))) continue;
    const LogAttempt attempt =
        logged.log_changes(file->object, file->fd.get(), LoggedFiles::Why::kUnasked);
    switch (attempt.outcome) {
      case LogAttempt::Outcome::kLogged:
        last = std::max(last, attempt.upto);
        ++result.logged;
        break;
      case LogAttempt::Outcome::kNeedsStore:
        ++result.refused;
        break;
      case LogAttempt::Outcome::kFull:
      case LogAttempt::Outcome::kFailed:
        ++result.skipped;
        break;
    }
  }
  if (last != durable::Lsn::kNone && !logged.log().commit(last)) {
    result.skipped += result.logged;
    result.logged = 0;
  }
  return result;
}

}  // namespace cairn::node
