// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/block_catalog.h"

#include "base/clock.h"

namespace cairn {

void BlockCatalog::count_dirty(BucketIndex bucket) const {
  BlockDescriptor& descriptor = block(bucket);
  dirty_.count(bucket, descriptor, objects_.at(descriptor.object_index()), monotonic_coarse_ms());
}

void BlockCatalog::count_clean(BucketIndex bucket) const {
  const BlockDescriptor& descriptor = block(bucket);
  dirty_.discount(bucket, descriptor, objects_.at(descriptor.object_index()));
}

}  // namespace cairn
