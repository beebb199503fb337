// SPDX-License-Identifier: Apache-2.0
// Which pages shared memory asks the kernel for: one enumeration for the configuration and the
// segments.
//
// Thread safety: values.
#pragma once

#include <cstdint>

namespace cairn {

enum class HugePages : std::uint8_t {
  kNever,     // 4 KiB pages
  kAdvise,    // transparent huge pages where the system grants them
  kReserved,  // hugetlb pages that the administrator reserved; segments fall back to kAdvise
  // As the option ram.huge_pages spells them.
  kAuto = kAdvise,
  kHugetlb = kReserved,
};

}  // namespace cairn
