// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/part_table.h"

#include <algorithm>
#include <cstring>

namespace cairn {
namespace {

constexpr std::uint64_t kFree = 0;
constexpr std::uint64_t kBeingWritten = 1;
constexpr std::uint64_t kThere = 2;
// As many as there are accounts (memory/pool/capacity_accounts.h, which stands above).
constexpr unsigned kStatementAccounts = 64;

void apply(const PartStatement& statement, PartHandling* handling) {
  switch (statement.property) {
    case PartProperty::kHome:
      if (!handling->home && statement.value < kTiersMax)
        handling->home = static_cast<TierId>(statement.value);
      return;
    case PartProperty::kPinned:
      if (!handling->pinned) handling->pinned = statement.value != 0;
      return;
    case PartProperty::kPriority:
      if (!handling->priority) handling->priority = statement.value;
      return;
    case PartProperty::kNeverBuffer:
      handling->never_buffered = true;
      return;
    case PartProperty::kAccount:
      if (!handling->account && statement.value < kStatementAccounts)
        handling->account = static_cast<AccountId>(statement.value);
      return;
    case PartProperty::kNone:
      return;
  }
}

}  // namespace

bool PartSet::add(std::uint8_t statement) {
  auto* const end = statements + kStatementsMax;
  auto* const room = std::find(statements, end, 0);
  if (room == end) return false;
  *room = statement;
  return true;
}

std::uint8_t PartTable::add(const PartStatement& statement) {
  const auto count = static_cast<unsigned>(
      std::min<std::uint64_t>(tables_->statement_count.load(), kStatementsMax));
  for (unsigned number = 1; number <= count; ++number) {
    if (this->statement(static_cast<std::uint8_t>(number)) == statement)
      return static_cast<std::uint8_t>(number);
  }
  if (count == kStatementsMax) return 0;
  SharedStatement& shared = tables_->statements[count + 1];
  shared.range.store(std::uint64_t{statement.last_block} << 32 | statement.first_block);
  shared.effect.store(static_cast<std::uint32_t>(statement.property) << 8 | statement.value);
  tables_->statement_count.store(count + 1, std::memory_order_release);
  return static_cast<std::uint8_t>(count + 1);
}

PartStatement PartTable::statement(std::uint8_t number) const {
  const SharedStatement& shared = tables_->statements[number];
  const std::uint64_t range = shared.range.load(std::memory_order_relaxed);
  const std::uint32_t effect = shared.effect.load(std::memory_order_relaxed);
  PartStatement statement;
  statement.first_block = static_cast<std::uint32_t>(range);
  statement.last_block = static_cast<std::uint32_t>(range >> 32);
  statement.property = static_cast<PartProperty>(effect >> 8);
  statement.value = static_cast<std::uint8_t>(effect);
  return statement;
}

// A process that dies in the middle leaves its record unused; another process that makes the same
// set at the same time makes a second one, which does no harm.
std::uint8_t PartTable::intern(const PartSet& set) {
  if (set == PartSet()) return 0;
  for (unsigned number = 1; number <= kSetsMax; ++number) {
    SharedSet& shared = tables_->sets[number];
    const auto found = static_cast<std::uint8_t>(number);
    std::uint64_t state = shared.state.load(std::memory_order_acquire);
    if (state == kThere && this->set(found) == set) return found;
    if (state != kFree || !shared.state.compare_exchange_strong(state, kBeingWritten)) continue;
    std::uint64_t words[kSetWords];
    std::memcpy(words, set.statements, sizeof words);
    for (unsigned at = 0; at < kSetWords; ++at)
      shared.words[at].store(words[at], std::memory_order_relaxed);
    shared.state.store(kThere, std::memory_order_release);
    return found;
  }
  return 0;
}

PartSet PartTable::set(std::uint8_t number) const {
  PartSet set;
  const SharedSet& shared = tables_->sets[number];
  if (shared.state.load(std::memory_order_acquire) != kThere) return set;
  std::uint64_t words[kSetWords];
  for (unsigned at = 0; at < kSetWords; ++at)
    words[at] = shared.words[at].load(std::memory_order_relaxed);
  std::memcpy(set.statements, words, sizeof words);
  return set;
}

PartHandling PartTable::of(std::uint8_t number, BlockNumber block) const {
  PartHandling handling;
  const PartSet set = this->set(number);
  for (const std::uint8_t each : set.statements) {
    if (each == 0) break;
    const PartStatement said = statement(each);
    if (said.holds_for(block)) apply(said, &handling);
  }
  return handling;
}

bool PartTable::keeps_any_out(std::uint8_t number) const {
  const PartSet set = this->set(number);
  return std::any_of(std::begin(set.statements), std::end(set.statements), [&](std::uint8_t each) {
    return each != 0 && statement(each).property == PartProperty::kNeverBuffer;
  });
}

}  // namespace cairn
