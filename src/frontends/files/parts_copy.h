// SPDX-License-Identifier: Apache-2.0
// The application's vector, as it was when the call began: the bytes of a read may overwrite it.
//
// Thread safety: a call has one of its own. Ownership: of the copy. Source: readv(2).
#pragma once

#include <errno.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <cstddef>

#include "base/check.h"
#include "base/system_call.h"
#include "base/user_copy.h"

namespace cairn {

class PartsCopy {
 public:
  PartsCopy() = default;
  ~PartsCopy() {
    if (parts_ != few_) sys::munmap(parts_, kBytesMax);
  }
  PartsCopy(const PartsCopy&) = delete;
  PartsCopy& operator=(const PartsCopy&) = delete;

  // 0 or -errno.
  int take(const iovec* parts, int count) {
    if (count < 0 || count > IOV_MAX) return -EINVAL;
    if (count > kFew) {
      void* memory =
          sys::mmap(nullptr, kBytesMax, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (sys::is_error(memory)) return -ENOMEM;
      parts_ = static_cast<iovec*>(memory);
    }
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(iovec);
    CAIRN_DCHECK(bytes <= kBytesMax);
    return user_copy(parts_, parts, bytes) == 0 ? 0 : -EFAULT;
  }
  const iovec* get() const { return parts_; }

 private:
  static constexpr int kFew = 32;
  static constexpr std::size_t kBytesMax = IOV_MAX * sizeof(iovec);

  iovec few_[kFew];
  iovec* parts_ = few_;
};

}  // namespace cairn
