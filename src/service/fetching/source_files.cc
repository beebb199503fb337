// SPDX-License-Identifier: Apache-2.0
#include "service/fetching/source_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "service/process/quiet_open.h"
#include "service/write_back/descriptor_budget.h"

namespace cairn::node {
namespace {

bool is_of(const Object& object, int fd) {
  StoreStatus status;
  return store_status(fd, &status) == 0 && status.key == object.key();
}

}  // namespace

SourceFile::SourceFile(UniqueFd descriptor) : fd(std::move(descriptor)), file(fd.get(), O_RDONLY) {
  // The caller knows what it fetches; the kernel's own reading ahead would only get in its way.
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
}

SourceFilePtr open_source(const NodeMemory& memory, ObjectIndex object, pid_t pid, int descriptor) {
  UniqueFd fd = open_quietly(fmt::format("/proc/{}/fd/{}", pid, descriptor));
  // The number may be another file's by now.
  if (!fd || !is_of(memory.objects().at(object), fd.get())) return nullptr;
  return std::make_shared<SourceFile>(std::move(fd));
}

// A small part of what the service spares for everything.
SourceFiles::SourceFiles(const NodeMemory& memory)
    : memory_(memory), files_max_(std::min<std::size_t>(kFilesMax, spared_descriptors() / 4)) {}

SourceFilePtr SourceFiles::open(ObjectIndex object, pid_t pid, int descriptor) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(raw(object));
    // The record may be another file's by now.
    if (found != files_.end()) {
      if (is_of(memory_.objects().at(object), found->second->fd.get())) return found->second;
      files_.erase(found);
    }
  }
  SourceFilePtr file = open_source(memory_, object, pid, descriptor);
  if (file == nullptr) return nullptr;
  memory_.objects().at(object).mark(kMarkFetchedFrom, true);
  const std::lock_guard lock(mutex_);
  if (files_.size() >= files_max_) files_.erase(files_.begin());
  return files_.try_emplace(raw(object), std::move(file)).first->second;
}

void SourceFiles::forget(ObjectIndex object) {
  memory_.objects().at(object).mark(kMarkFetchedFrom, false);
  SourceFilePtr closed;  // without the lock: to close may wait for the store
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(raw(object));
  if (found == files_.end()) return;
  closed = std::move(found->second);
  files_.erase(found);
}

}  // namespace cairn::node
