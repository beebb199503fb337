// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/dirty_view.h"

#include <errno.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <unordered_map>

#include "base/clock.h"

namespace cairn::node {
namespace {

std::string describe(const Object& object) {
  return "inode " + std::to_string(object.inode) + " on device " +
         std::to_string(major(raw(object.store()))) + ":" +
         std::to_string(minor(raw(object.store())));
}

// Scratch data has nowhere to be stored: none of it is owed.
bool is_scratch(const NodeMemory& memory, ObjectIndex index) {
  return memory.objects().at(index).handling().mode == BufferingMode::kScratch;
}

bool is_unsettled(const Object& object) {
  return object.opens.load() == 0 && object.has(kObjectTimesDirty) && !object.has(kObjectUnlinked);
}

}  // namespace

DirtyView view_dirty(const NodeMemory& memory, const StoreFiles& files, std::size_t paths_max) {
  DirtyView view;
  std::unordered_map<std::uint32_t, std::uint64_t> bytes_of;
  memory.for_each_maybe_dirty([&](BucketIndex bucket) {
    const BlockDescriptor& block = memory.block(bucket);
    const auto pages = static_cast<unsigned>(__builtin_popcount(block.dirty_pages()));
    const std::uint32_t object = raw(block.object_index());
    if (pages == 0 || object == 0 || is_scratch(memory, block.object_index())) return;
    bytes_of[object] += pages * kPageBytes;
    view.bytes += pages * kPageBytes;
    view.bytes_per_tier[raw(memory.tier_of(bucket))] += pages * kPageBytes;
  });
  for (const StoreFilePtr& file : files.snapshot()) {
    if (is_unsettled(memory.objects().at(file->object)) && !is_scratch(memory, file->object))
      bytes_of.try_emplace(raw(file->object), 0);
  }
  const std::int64_t now_ns = monotonic_ns();
  const std::uint32_t now_ms = monotonic_coarse_ms();
  for (const auto& [index, bytes] : bytes_of) {
    UnstoredFile unstored;
    unstored.object = static_cast<ObjectIndex>(index);
    unstored.dirty_bytes = bytes;
    const Object& object = memory.objects().at(unstored.object);
    unstored.since_seconds = elapsed_ms(now_ms, object.dirty_since_ms.load()) / 1000.0;
    if (const StoreFilePtr file = files.find(unstored.object)) {
      unstored.error = file->error.load();
      unstored.failures = file->failures.load();
      unstored.last_failure_ns = file->last_failure_ns.load();
      unstored.passed_ns = file->passed_ns.load();
      unstored.lost = file->lost.get();
      if (unstored.failures != 0) {
        unstored.since_seconds = static_cast<double>(now_ns - file->failing_since_ns.load()) / 1e9;
      }
    }
    view.files.push_back(std::move(unstored));
  }
  std::sort(view.files.begin(), view.files.end(),
            [](const UnstoredFile& left, const UnstoredFile& right) {
              if ((left.error != 0) != (right.error != 0)) return left.error != 0;
              return left.dirty_bytes > right.dirty_bytes;
            });
  name_files(memory, files, paths_max, view.files);
  return view;
}

std::vector<UnstoredFile> list_unsynced(const NodeMemory& memory, const StoreFiles& files,
                                        std::size_t paths_max) {
  std::vector<UnstoredFile> list = view_dirty(memory, files, paths_max).files;
  for (UnstoredFile& file : list) {
    if (file.error == 0 && memory.objects().at(file.object).sync_failures.load() != 0)
      file.error = EIO;
  }
  for (const ClosedFile& lost : files.unsynced().lost()) {
    const auto is_same = [&](const UnstoredFile& file) {
      return file.object == lost.object && memory.objects().at(file.object).is_of(lost.key);
    };
    auto found = std::find_if(list.begin(), list.end(), is_same);
    if (found == list.end()) {
      UnstoredFile file;
      file.object = lost.object;
      file.path = lost.path;
      found = list.insert(list.end(), std::move(file));
    }
    found->error = EIO;
  }
  return list;
}

void name_files(const NodeMemory& memory, const StoreFiles& files, std::size_t paths_max,
                std::vector<UnstoredFile>& unstored) {
  for (std::size_t at = 0; at < std::min(paths_max, unstored.size()); ++at) {
    if (!unstored[at].path.empty()) continue;
    const StoreFilePtr file = files.find(unstored[at].object);
    unstored[at].path = file != nullptr ? path_of_descriptor(file->fd.get())
                                        : describe(memory.objects().at(unstored[at].object));
  }
}

}  // namespace cairn::node
