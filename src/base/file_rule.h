// SPDX-License-Identifier: Apache-2.0
// One rule of a schema: which files it speaks of, and how they are treated. The first rule that
// matches a file and sets a property decides that property.
//
// Thread safety: plain values. Ownership: owns its strings.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/handling.h"
#include "base/reservation.h"

namespace cairn {

// How the file is opened.
enum class RuleAccess : std::uint8_t { kAny = 0, kRead, kWrite, kReadWrite };
enum class PrefetchHint : std::uint8_t { kNormal = 0, kSequential, kRandom, kWillNeed, kNone };

struct FileRule {
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::size_t kPatternBytesMax = 199;

  // Which files: a glob as of --exclude (whole path, path below the buffered directory, or last
  // component), the size when it is opened, how it is opened, and which bytes of it.
  std::string pattern;
  std::uint64_t size_min = 0;
  std::uint64_t size_max = kUnlimited;  // inclusive
  std::uint64_t offset_begin = 0;
  std::uint64_t offset_end = kUnlimited;  // exclusive
  RuleAccess access = RuleAccess::kAny;

  // The handling of these files; later rules and the defaults decide all that is not set.
  std::optional<BufferingMode> mode;
  std::optional<FlushTrigger> trigger;
  std::optional<Durability> durability;  // node: only where the node has a durable tier
  std::optional<std::string> tier;       // name of a tier of the node: new blocks go there first
  std::optional<std::string> policy;     // name of a placement policy
  std::optional<bool> pinned;            // never evicted from its tier
  std::optional<unsigned> priority;      // 0 (leaves first) to 7, 4 is what others have
  std::optional<PrefetchHint> prefetch;
  std::optional<Reservation> reserve;  // of a tier, for all files of the rule together; 0: nothing
  std::optional<unsigned> keep;        // lifetime: generations of `{n}` in the pattern that stay
  // In what chunks a dataset of theirs is going to be read: "/DATASET chunk=[N,...] ghost=[N,...]".
  // Several rules that match may speak of different datasets.
  std::optional<std::string> array;

  std::string name;    // of the rule, for `cairn explain`; empty: none was given
  std::string source;  // "FILE:LINE", or the command that set it

  bool speaks_of_part() const { return offset_begin != 0 || offset_end != kUnlimited; }
};

}  // namespace cairn
