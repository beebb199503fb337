// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/block_catalog.h"

#include "base/clock.h"
#include "base/crash_point.h"

namespace cairn {

void BlockCatalog::count_dirty(BucketIndex bucket) const {
  CAIRN_CRASH_POINT("dirty.counting");
  BlockDescriptor& descriptor = block(bucket);
  dirty_.count(bucket, descriptor, objects_.at(descriptor.object_index()), monotonic_coarse_ms());
  CAIRN_CRASH_POINT("dirty.counted");
}

void BlockCatalog::count_clean(BucketIndex bucket) const {
  CAIRN_CRASH_POINT("dirty.discounting");
  const BlockDescriptor& descriptor = block(bucket);
  dirty_.discount(bucket, descriptor, objects_.at(descriptor.object_index()));
  CAIRN_CRASH_POINT("dirty.discounted");
}

}  // namespace cairn
