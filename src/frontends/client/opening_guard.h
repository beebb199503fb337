// SPDX-License-Identifier: Apache-2.0
// Says that this process opens a file, which the kernel may have opened and open_object() has not
// counted yet.
//
// A file that loses its name in between is not out of reach, though nobody has it open by the
// table: its dirty data is kept as long as anybody is opening anything. The order makes that safe:
// the guard is there before the kernel's open, and a process that drops data looks for guards after
// the kernel's unlink; an open that begins later does not find the name any more.
//
// A thread that blocks in open() (a FIFO) keeps the data of all unlinked files of the node
// meanwhile; the data takes room, and goes to the store when that is short. If a handler jumps out
// of the open(), the thread's next one takes the guard away.
//
// Thread safety: any thread. Death safety: the node's count is never too small; the service takes
// back what a dead client's slot says (a death between the two counts leaves it too large until the
// node is alone).
#pragma once

#include <atomic>

#include "base/check.h"
#include "frontends/client/begun_calls.h"
#include "frontends/client/process_page.h"

namespace cairn {

class OpeningGuard {
 public:
  // Null: a process without a node, or a path that is not managed.
  explicit OpeningGuard(const Actor* actor)
      : node_(actor == nullptr ? nullptr : &actor->memory->service_board().openings),
        own_(actor == nullptr ? nullptr : &actor->memory->slot(actor->self.slot()).openings),
        owner_bits_(process_page.owner_bits.load(std::memory_order_relaxed)) {
    if (node_ == nullptr) return;
    begun.end_left(this, [this](std::uint32_t owner_bits) { take_away(owner_bits); });
    node_->fetch_add(1, std::memory_order_seq_cst);
    own_->fetch_add(1, std::memory_order_relaxed);
    is_followed_ = begun.begin(this, owner_bits_);
  }
  ~OpeningGuard() {
    if (node_ == nullptr || (is_followed_ && !begun.end(this))) return;
    take_away(owner_bits_);
  }
  OpeningGuard(const OpeningGuard&) = delete;
  OpeningGuard& operator=(const OpeningGuard&) = delete;

 private:
  // A signal handler may have forked: a child finds here what is its parent's.
  void take_away(std::uint32_t owner_bits) {
    if (process_page.owner_bits.load(std::memory_order_relaxed) != owner_bits) return;
    CAIRN_DCHECK(own_->load(std::memory_order_relaxed) != 0);
    CAIRN_DCHECK(node_->load(std::memory_order_relaxed) != 0);
    own_->fetch_sub(1, std::memory_order_relaxed);
    node_->fetch_sub(1, std::memory_order_release);
  }

  static inline constinit thread_local BegunCalls<std::uint32_t> begun{};

  std::atomic<std::uint32_t>* node_;
  std::atomic<std::uint32_t>* own_;
  std::uint32_t owner_bits_;
  bool is_followed_ = false;
};

}  // namespace cairn
