// SPDX-License-Identifier: Apache-2.0
// The one table of ioctl requests and their effects on a regular file, as far as they matter to the
// holder of the file's newest bytes.
//
// A request that is not in the table may do anything. Then the file goes to the store and to the
// kernel for the call, and we adopt the kernel's size and times afterwards: slow, and always right.
//
// Thread safety: constants only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cairn {

enum class IoctlEffect : std::uint8_t {
  kAnything,         // the file is the kernel's for the call
  kHarmless,         // neither reads nor changes buffered bytes
  kReadsStore,       // tells where or how the bytes lie: they have to be stored
  kFreezesStore,     // makes a state of the whole file system last: everything has to be stored
  kSetsAttributes,   // append-only and immutable may be among them
  kWantsNoWriter,    // refused while anybody, the service too, has the file open for writing
  kCloseOnExec,      // FIOCLEX
  kNoCloseOnExec,    // FIONCLEX
  kSetsStatusFlags,  // FIONBIO, FIOASYNC: O_NONBLOCK is kept twice
  kBytesLeft,        // FIONREAD
  kReserves,         // fallocate() under the names that XFS gave it
  kPunches,
  kZeroes,
  kClones,  // extents are shared between two files
  kClonesRange,
  kDeduplicates,
};

// Where a descriptor lies in what a request takes.
using DescriptorPlace = std::int16_t;
inline constexpr DescriptorPlace kNoDescriptor = -1;
inline constexpr DescriptorPlace kIsArgument =
    -2;  // the argument itself; else bytes from its start

struct IoctlRule {
  std::uint32_t request = 0;
  IoctlEffect effect = IoctlEffect::kAnything;
  std::array<DescriptorPlace, 2> descriptors = {kNoDescriptor, kNoDescriptor};
  std::uint16_t bytes = 0;        // of the structure with the descriptors
  bool keeps_descriptor = false;  // the kernel goes on using the file after the call

  bool has_descriptor() const { return descriptors[0] != kNoDescriptor; }
  // Whether it may concern other files than that of its own descriptor.
  bool concerns_others() const {
    return has_descriptor() || effect == IoctlEffect::kFreezesStore ||
           effect == IoctlEffect::kClones || effect == IoctlEffect::kClonesRange ||
           effect == IoctlEffect::kDeduplicates;
  }
};

// The largest IoctlRule::bytes.
inline constexpr std::size_t kIoctlBytesMax = 512;

// The kernel looks at 32 bits of a request, whatever is in the others.
IoctlRule ioctl_rule(unsigned long request);

}  // namespace cairn
