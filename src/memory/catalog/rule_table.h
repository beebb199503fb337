// SPDX-License-Identifier: Apache-2.0
// The rules of a node as its clients read them: compiled, of fixed size, in the control segment.
// Clients ask when they open a file; `cairn set` changes them on a running node.
//
// There are two sets of records: the one in force, and the one that the service writes next. A
// service that dies while it writes leaves the rules as they were; a reader starts again only after
// a whole new set has come into force meanwhile.
//
// Thread safety: one writer (the service), any readers. Ownership: refers to the control segment.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "memory/catalog/object_handling.h"
#include "memory/catalog/part_table.h"

namespace cairn {

// One rule. Conditions first, then which properties it decides and how.
struct RuleRecord {
  static constexpr std::size_t kPatternBytes = FileRule::kPatternBytesMax + 1;
  enum Property : std::uint16_t {
    kMode = 1u << 0,
    kTrigger = 1u << 1,
    kPolicy = 1u << 2,
    kHome = 1u << 3,
    kPinned = 1u << 4,
    kPriority = 1u << 5,
    kPrefetch = 1u << 6,
    kAccount = 1u << 7,
    kDurability = 1u << 8
  };
  static constexpr std::uint16_t kAllProperties = 0x1ff;

  char pattern[kPatternBytes] = {};  // extended glob where `has_numbers`
  std::uint64_t size_min = 0;
  std::uint64_t size_max = UINT64_MAX;
  std::uint32_t run = 0;         // of this run only; 0: of every run
  std::uint32_t handling = 0;    // bits of an ObjectHandling
  std::uint16_t properties = 0;  // which of them count
  RuleAccess access = RuleAccess::kAny;
  std::uint8_t has_numbers = 0;
  // For a rule about a part of its files: the number of its statement on each of these properties
  // (0: none), which it decides for the blocks of the part and for no others.
  std::uint8_t part_home = 0;
  std::uint8_t part_pinned = 0;
  std::uint8_t part_priority = 0;
  std::uint8_t part_never_buffered = 0;
  // The number of the statement that all blocks of the files belong to the rule's account; 0: they
  // belong to the process that brings them.
  std::uint8_t account_statement = 0;
  std::uint8_t unused[7] = {};

  bool speaks_of_part() const {
    return (part_home | part_pinned | part_priority | part_never_buffered) != 0;
  }
};

struct RuleTableHeader {
  // Sets of rules that have come into force. The last one is set `published % 2`.
  std::atomic<std::uint32_t> published;
  std::atomic<std::uint32_t> counts[2];
  // What holds for a file that no rule speaks of: bits of an ObjectHandling.
  std::atomic<std::uint32_t> default_handling;
};

// The facts about a file that is being opened, for the decision of a rule.
struct RuleQuestion {
  const char* path = nullptr;   // canonical
  const char* below = nullptr;  // the part of it below the managed directory
  std::uint64_t size = 0;
  std::uint32_t run = 0;
  bool reads = false;
  bool writes = false;
};

class RuleTable {
 public:
  static constexpr std::uint32_t kRulesMax = 256;
  static constexpr std::size_t kBytes =
      sizeof(RuleTableHeader) + 2 * kRulesMax * sizeof(RuleRecord) + PartTable::kBytes;
  // The table in the control segment, as its map knows it.
  struct alignas(64) Bytes {
    std::byte bytes[kBytes];
  };

  RuleTable() = default;
  explicit RuleTable(void* memory)
      : header_(static_cast<RuleTableHeader*>(memory)),
        records_(reinterpret_cast<RuleRecord*>(header_ + 1)),
        parts_(records_ + 2 * kRulesMax) {}

  bool is_empty() const {
    return header_->counts[header_->published.load(std::memory_order_acquire) % 2].load(
               std::memory_order_acquire) == 0;
  }
  ObjectHandling default_handling() const {
    return ObjectHandling::from_bits(header_->default_handling.load(std::memory_order_relaxed));
  }
  // Service only.
  void set_default_handling(const ObjectHandling& handling) {
    header_->default_handling.store(handling.bits(), std::memory_order_relaxed);
  }
  // Service only. The first kRulesMax count.
  void publish(std::span<const RuleRecord> rules);
  // What the rules say of a file, over `otherwise` for what none of them decides: for each property
  // the first rule that matches and decides it. Rules for parts decide for these alone, and what a
  // rule for the whole file before them has decided they leave.
  ObjectHandling decide(const RuleQuestion& question, ObjectHandling otherwise) const;
  const PartTable& parts() const { return parts_; }
  // Service only.
  PartTable& parts() { return parts_; }

 private:
  RuleTableHeader* header_ = nullptr;
  RuleRecord* records_ = nullptr;
  mutable PartTable parts_;
};

// Whether the rule speaks of the file.
bool rule_matches(const RuleRecord& rule, const RuleQuestion& question);

}  // namespace cairn
