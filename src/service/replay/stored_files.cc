// SPDX-License-Identifier: Apache-2.0
#include "service/replay/stored_files.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "service/durable_log/directory_storage.h"
#include "service/durable_log/durable_log.h"
#include "service/replay/log_index.h"
#include "service/replay/saved_copy.h"

namespace cairn::durable {
namespace {

bool names_any(const PendingDirectory& directory, const std::set<FileId>& files) {
  for (const PendingDirectory::Record& record : directory.records) {
    for (const NameChange& change : record.changes)
      if (change.after && files.contains(change.after->id)) return true;
  }
  return false;
}

// The store may have lost the names with the power, and the replay could not bring them back.
bool is_of_earlier_start(const PendingDirectory& directory) {
  const std::uint64_t boot = boot_mark();
  return std::any_of(
      directory.records.begin(), directory.records.end(),
      [boot](const auto& record) { return record.boot == 0 || record.boot != boot; });
}

}  // namespace

Result<std::uint64_t> forget_stored(const std::string& tier_directory, const IsStored& is_stored) {
  const auto storage = open_directory_storage(tier_directory, FolderWanted::kExisting);
  if (!storage) return storage.status();
  LogIndex index;
  FoundLog found{[&index](const FoundRecord& record, const LogSegment& segment) {
                   index.add(record, segment);
                 },
                 {}};
  auto opened = DurableLog::open(tier_directory, {}, &found);
  if (!opened) return opened.status();
  const std::unique_ptr<DurableLog> log = std::move(*opened);
  const std::vector<PendingDirectory> directories = index.take_directories();
  std::set<FileId> waiting;
  for (const PendingFile& file : index.take_pending()) {
    if (is_stored(file.identity)) {
      CAIRN_RETURN_IF_ERROR(log->retire(file.object, file.last, file.store));
    } else {
      waiting.insert(file.identity.key.id);
    }
  }
  // Names that programs have changed since are the store's.
  for (const PendingDirectory& directory : directories) {
    const bool is_needed = names_any(directory, waiting) || is_of_earlier_start(directory);
    if (!is_needed && sync_folder_of(directory.identity.path) == 0)
      CAIRN_RETURN_IF_ERROR(log->retire(directory.object, directory.records.back().lsn, {}));
  }
  CAIRN_RETURN_IF_ERROR(log->commit(log->appended()));
  const std::uint64_t left = log->figures().objects;
  CAIRN_RETURN_IF_ERROR(log->close());
  return left;
}

}  // namespace cairn::durable
