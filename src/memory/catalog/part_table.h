// SPDX-License-Identifier: Apache-2.0
// What rules say of parts of files, in the control segment: single statements ("blocks 16 to 31
// belong in tier 2") that the service adds with the rules, and sets of them, one for each
// combination that some file is subject to. An object carries the number of its set (bits 27 to 31
// of its flags, memory/catalog/object_handling.h); 0 says that all of it is treated alike.
//
// A rule that reserves room for its files says in a statement about all blocks whose account these
// are of, because the flags have no bits left for it.
//
// A block belongs to every part that has one of its bytes. The first statement of a set decides.
//
// Invariant: statements and sets never change once they are there, so a reader that sees a number
// may read what it stands for. Equal ones share a number: runs that come again and again with the
// same rules need no more of them.
//
// Thread safety: add() by the service alone, the rest by any thread. Ownership: refers to the
// control segment.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"

namespace cairn {

enum class PartProperty : std::uint8_t {
  kNone = 0,
  kHome,
  kPinned,
  kPriority,
  kNeverBuffer,
  kAccount
};

struct PartStatement {
  std::uint32_t first_block = 0;
  std::uint32_t last_block = UINT32_MAX;  // inclusive
  PartProperty property = PartProperty::kNone;
  std::uint8_t value = 0;
  std::uint16_t reserved = 0;

  bool holds_for(BlockNumber number) const {
    return raw(number) >= first_block && raw(number) <= last_block;
  }
  friend bool operator==(const PartStatement&, const PartStatement&) = default;
};

// The handling of a block by the parts that it belongs to.
struct PartHandling {
  std::optional<TierId> home;
  std::optional<bool> pinned;
  std::optional<std::uint8_t> priority;
  bool never_buffered = false;
  std::optional<AccountId> account;  // whose room its bucket is, if that is a rule's
};

// The statements of one set, in the order in which they decide.
struct PartSet {
  static constexpr unsigned kStatementsMax = 24;
  std::uint8_t statements[kStatementsMax] = {};

  // False when there is no room for another.
  bool add(std::uint8_t statement);
  friend bool operator==(const PartSet&, const PartSet&) = default;
};

class PartTable {
 public:
  static constexpr unsigned kStatementsMax = 255;  // 0 is none
  static constexpr unsigned kSetsMax = 31;         // as the object's bits can tell

 private:
  struct SharedStatement {
    std::atomic<std::uint64_t> range;
    std::atomic<std::uint32_t> effect;
    std::uint32_t reserved;
  };
  static constexpr unsigned kSetWords = PartSet::kStatementsMax / 8;
  struct SharedSet {
    std::atomic<std::uint64_t> state;  // 0: free, 1: being written, 2: there
    std::atomic<std::uint64_t> words[kSetWords];
  };
  struct Tables {
    std::atomic<std::uint64_t> statement_count;
    SharedStatement statements[kStatementsMax + 1];
    SharedSet sets[kSetsMax + 1];
  };

 public:
  static constexpr std::size_t kBytes = sizeof(Tables);

  PartTable() = default;
  explicit PartTable(void* memory) : tables_(static_cast<Tables*>(memory)) {}

  // Service only. The number of the statement, 0 when the table is full.
  std::uint8_t add(const PartStatement& statement);
  PartStatement statement(std::uint8_t number) const;
  // The number of the set; 0 when it is empty, or the table is full.
  std::uint8_t intern(const PartSet& set);
  // The handling of a block by the set `number`.
  PartHandling of(std::uint8_t number, BlockNumber block) const;
  // Whether some block of the set's files is never buffered.
  bool keeps_any_out(std::uint8_t number) const;

 private:
  PartSet set(std::uint8_t number) const;

  Tables* tables_ = nullptr;
};

}  // namespace cairn
