// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/durable_log.h"

#include <utility>

#include "base/check.h"
#include "service/durable_log/directory_storage.h"
#include "service/durable_log/log_core.h"
#include "service/durable_log/log_scan.h"

namespace cairn::durable {

namespace {

// A folder with segments and no superblock is one that lost it, and must not be taken for new.
Status make_superblock(LogStorage& storage, std::uint64_t segment_bytes) {
  auto names = storage.names();
  if (!names) return names.status();
  for (const std::string& name : *names) {
    if (name.starts_with("log.")) {
      return {StatusCode::kInvalid, storage.where() +
                                        " has segments and no superblock; `cairn check --repair`"
                                        " makes a new one from them"};
    }
  }
  return write_superblock(storage, new_superblock(segment_bytes));
}

std::uint64_t word(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace

Result<std::unique_ptr<DurableLog>> DurableLog::open(const std::string& tier_directory,
                                                     const LogOptions& options, FoundLog* found) {
  auto storage = open_directory_storage(tier_directory, FolderWanted::kMade);
  if (!storage) return storage.status();
  return open(std::move(*storage), options, found);
}

Result<std::unique_ptr<DurableLog>> DurableLog::open(std::unique_ptr<LogStorage> storage,
                                                     const LogOptions& options, FoundLog* found) {
  auto superblock = open_superblock(*storage, SuperblockLock::kTaken);
  if (!superblock && superblock.status().code() == StatusCode::kNotFound) {
    CAIRN_RETURN_IF_ERROR(make_superblock(*storage, options.segment_bytes));
    superblock = open_superblock(*storage, SuperblockLock::kTaken);
  }
  if (!superblock) return superblock.status();
  if (superblock->content.version != kLogVersion) {
    CAIRN_RETURN_IF_ERROR(write_superblock(*storage, superblock->content));
    // The older file stays locked until the new one is.
    auto renewed = open_superblock(*storage, SuperblockLock::kTaken);
    if (!renewed) return renewed.status();
    superblock = std::move(renewed);
  }
  auto core = std::make_unique<LogCore>(std::move(storage), std::move(*superblock), options);
  CAIRN_RETURN_IF_ERROR(core->start(found));
  return std::unique_ptr<DurableLog>(new DurableLog(std::move(core)));
}

DurableLog::DurableLog(std::unique_ptr<LogCore> core) : core_(std::move(core)) {
  CAIRN_CHECK(core_ != nullptr);
}
DurableLog::~DurableLog() = default;

LogObject DurableLog::hold(const ObjectKey& key) { return core_->hold(key); }

Result<LogObject> DurableLog::add_object(const FileIdentity& identity, const FileState& store) {
  return core_->add_object(identity, store);
}
std::string DurableLog::path_of(LogObject object) const { return core_->path_of(object); }

void DurableLog::forget(LogObject object) { core_->forget(object); }

Result<Lsn> DurableLog::append_data(LogObject object, const DataRange& range,
                                    const FileState& state) {
  CAIRN_CHECK(!range.bytes.empty() && object != LogObject::kNone);
  return core_->append({RecordKind::kData,
                        0,
                        object,
                        {range.offset, state.size, word(state.mtime_ns)},
                        range.bytes});
}

std::size_t DurableLog::data_bytes_max() const { return core_->data_bytes_max(); }

Result<Lsn> DurableLog::append_size(LogObject object, const FileState& state) {
  CAIRN_CHECK(object != LogObject::kNone);
  return core_->append({RecordKind::kSize, 0, object, {0, state.size, word(state.mtime_ns)}, {}});
}

Result<Lsn> DurableLog::append_renamed(LogObject object, const std::string& path) {
  CAIRN_CHECK(object != LogObject::kNone);
  return core_->append_renamed(object, path);
}

Result<Lsn> DurableLog::append_removed(LogObject object) {
  CAIRN_CHECK(object != LogObject::kNone);
  return core_->append_removed(object);
}

Result<Lsn> DurableLog::append_names(LogObject directory, std::span<const NameChange> changes) {
  CAIRN_CHECK(directory != LogObject::kNone && !changes.empty());
  const std::vector<std::byte> names = encode_names(changes);
  if (names.size() > kNamesBytesMax)
    return Status(StatusCode::kInvalid, "too many names for one record of the durable log", EINVAL);
  return core_->append({RecordKind::kNames, 0, directory, {0, core_->boot(), 0}, names});
}

std::uint64_t DurableLog::id() const { return core_->id(); }

std::vector<LoggedDirectory> DurableLog::directories() const { return core_->directories(); }

std::vector<RemovedObject> DurableLog::removed() const { return core_->removed(); }

Result<Lsn> DurableLog::begin_storing(LogObject object) {
  CAIRN_CHECK(object != LogObject::kNone);
  return core_->begin_storing(object);
}

Status DurableLog::retire(LogObject object, Lsn upto, const FileState& store) {
  CAIRN_CHECK(object != LogObject::kNone);
  return core_->retire(object, upto, store);
}

Status DurableLog::commit(Lsn lsn) { return core_->commit_until(lsn, nullptr); }

Status DurableLog::commit_within(Lsn lsn, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  return core_->commit_until(lsn, &until);
}

Lsn DurableLog::appended() const { return core_->appended(); }
Lsn DurableLog::durable() const { return core_->durable(); }
Status DurableLog::health() const { return core_->health(); }

std::vector<PressingObject> DurableLog::pressure() const {
  constexpr std::size_t kObjectsNamed = 256;
  return core_->oldest(kObjectsNamed, true);
}
std::vector<PressingObject> DurableLog::oldest(std::size_t count) const {
  return core_->oldest(count, false);
}
void DurableLog::on_pressure(std::function<void()> call) { core_->on_pressure(std::move(call)); }

std::uint64_t DurableLog::leftovers() const { return core_->leftovers(); }
LogFigures DurableLog::figures() const { return core_->figures(); }
Status DurableLog::close() { return core_->close(); }

}  // namespace cairn::durable
