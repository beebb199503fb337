// SPDX-License-Identifier: Apache-2.0
// Setting counts right that deaths left wrong: a client can be killed between counting something
// and doing it.
//
// The order of such steps makes every count too large and never too small, so that a wrong count
// costs a record that is not reused or a look of the flusher, never data. When nobody is attached
// the right counts are known: nothing is open but what replaced images hold, no mapping exists, and
// blocks can be counted.
//
// A replaced image is one whose process has executed another program, which may never attach: as
// one that is linked statically, for as long as it runs. Its holds count, and nobody adds to them.
//
// Thread safety: one thread. Corrections are made while no client can attach
// (ClientTable::if_nobody).
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <vector>

#include "memory/tiers/actor.h"
#include "service/attachment/client_table.h"
#include "service/write_back/unserved_files.h"

namespace cairn::node {

class Audit {
 public:
  enum class Outcome : std::uint8_t {
    kDone,
    kLater  // clients are attached, data is still dirty, or blocks move
  };

  // Keeps those who open objects and fetch blocks for the service still while it exists, if it
  // holds: somebody may be at work.
  using Stillness = std::unique_lock<std::shared_mutex>;

  // `is_quiet` tells whether flusher and organizer have nothing under way.
  Audit(const NodeMemory& memory, ClientTable& clients, UnservedFiles& unserved,
        std::function<bool()> is_quiet, std::function<Stillness()> hold_still)
      : memory_(memory),
        clients_(clients),
        unserved_(unserved),
        is_quiet_(std::move(is_quiet)),
        hold_still_(std::move(hold_still)) {}

  // `replaced`: departed images whose sweep is over, and whose holds wait.
  Outcome run(Actor& actor, std::span<const Owner> replaced);

 private:
  struct Holds;

  bool correct_references(Actor& actor, std::span<const Owner> replaced);
  void correct_openings(std::span<const Owner> replaced);
  void correct_descriptions(std::span<const DescriptionIndex> descriptions, Holds* held);
  void correct_object(Actor& actor, ObjectIndex index, std::uint32_t kept, const Holds& held);
  bool correct_blocks(std::span<const Owner> replaced);
  Holds holds_of(std::span<const Owner> replaced) const;
  bool has_dirty_pages() const;
  template <typename Visit>
  void for_each_object(Visit&& visit) const;

  const NodeMemory& memory_;
  ClientTable& clients_;
  UnservedFiles& unserved_;
  const std::function<bool()> is_quiet_;
  const std::function<Stillness()> hold_still_;
};

}  // namespace cairn::node
