// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/block_directory.h"

#include "base/check.h"

namespace cairn {

BucketIndex BlockDirectory::publish(BucketIndex bucket, Owner self, const OwnerTable& owners) {
  const BlockDescriptor& descriptor = at(bucket);
  const ObjectIndex object = descriptor.object_index();
  const BlockNumber number = descriptor.block_number();
  const HashPosition position = position_of(object, number);
  OwnedGuard guard(hash_.lock_of(position), self, owners);
  const std::uint32_t found = hash_.find(position, [&](std::uint32_t index) {
    return index != raw(bucket) && descriptors_[index].holds(object, number);
  });
  if (found != HashLines::kNotFound) return static_cast<BucketIndex>(found);
  return hash_.insert_locked(position, raw(bucket)) ? bucket : BucketIndex::kNone;
}

bool BlockDirectory::move(BucketIndex from, BucketIndex to, Owner self, const OwnerTable& owners) {
  const BlockDescriptor& descriptor = at(from);
  const HashPosition position = position_of(descriptor.object_index(), descriptor.block_number());
  OwnedGuard guard(hash_.lock_of(position), self, owners);
  return hash_.replace_locked(position, raw(from), raw(to));
}

bool BlockDirectory::withdraw(BucketIndex bucket, Owner self, const OwnerTable& owners) {
  const BlockDescriptor& descriptor = at(bucket);
  const HashPosition position = position_of(descriptor.object_index(), descriptor.block_number());
  OwnedGuard guard(hash_.lock_of(position), self, owners);
  return hash_.erase_locked(position, raw(bucket));
}

}  // namespace cairn
