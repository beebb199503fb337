// SPDX-License-Identifier: Apache-2.0
// What each ioctl request does to a regular file, as far as that matters to the holder of
// the file's newest bytes: the one table of them.
//
// What is not in the table may do anything. Then the file is stored and left to the kernel for the
// call, and the kernel's size and times are taken over afterwards: slow, and always right.
//
// Thread safety: constants only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cairn {

enum class IoctlEffect : std::uint8_t {
  kAnything,         // the file is the kernel's for the call
  kHarmless,         // neither reads nor changes what is buffered
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
  // Whether it may be about other files than that of the descriptor it is asked of.
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
