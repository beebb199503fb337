// SPDX-License-Identifier: Apache-2.0
// The names of the stores whose files the durable log has. The service asks a store once, when its
// first descriptor comes: one that hangs later would not answer.
//
// Thread safety: any thread. Ownership: values.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "base/ids.h"
#include "memory/backing/store_name.h"

namespace cairn::node {

class StoreNames {
 public:
  // `fd`: of any file of the store.
  StoreName name_of(StoreId id, int fd) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = names_.find(raw(id)); known != names_.end()) return known->second;
    }
    CAIRN_CHECK(fd >= 0);
    const StoreName name = store_name_of(fd);
    const std::lock_guard lock(mutex_);
    names_.emplace(raw(id), name);
    return name;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, StoreName> names_;
};

}  // namespace cairn::node
