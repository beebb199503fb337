// SPDX-License-Identifier: Apache-2.0
// What the service knows in its private memory alone about runs and treatment, kept for its
// successor as one text (service/keeping/kept_text.h): runs and their connections, accounts, rules,
// scratch directories, weights, declared orders, hints about arrays, the numbers of placement
// policies.
//
// The text decides. It is written after each change and before the change is answered:
//
//   a death                          finds in the text     and the successor
//   before a run-begin was answered  no run, or the run    undoes what had begun (accounts, rules,
//                                    with its answer       directories), or answers the same again
//   while a run lasts                the run               has it as before
//   before a run-end was answered    the run, or no run    drains and ends it again, or undoes what
//                                    but the answer        is left of it and answers the same again
//
// So no run is lost while its launcher lives. One whose launcher went away meanwhile has no
// connection any more, and ends as if it had been seen (RunCommands::end_absent).
//
// Thread safety: save() from any thread; restore() while the service is composed. Ownership:
// borrows the registries and the text; owns the table of connections.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "base/status.h"
#include "service/capacity/placement_engine.h"
#include "service/control/run_sessions.h"
#include "service/gathering/array_hints.h"
#include "service/keeping/kept_text.h"
#include "service/learning/order_declarations.h"
#include "service/treatment/rule_registry.h"
#include "service/treatment/scratch_space.h"
#include "service/write_back/flusher.h"

namespace cairn::node {

// The registries; all of them outlive the state.
struct KeptRegistries {
  RunTable& runs;
  AccountRegistry& accounts;
  PlacementEngine& placement;
  RuleRegistry& rules;
  ScratchSpace& scratch;
  Flusher& flusher;
  OrderDeclarations& declarations;
  ArrayHints& hints;
};

class KeptState {
 public:
  // Without a text nothing is kept.
  KeptState(const KeptRegistries& registries, KeptText* text) : of_(registries), text_(text) {}

  RunSessions& sessions() { return sessions_; }
  void save();
  // Whether a service has left anything: then restore() takes the place of all that a first one
  // does to fill the registries.
  bool has_heritage() const { return text_ != nullptr && !text_->get().empty(); }
  // Takes over what the dead service left. Requires: has_heritage(); the registries are empty; the
  // shared memory has been put right.
  // Errors: names what is wrong.
  Status restore();

 private:
  Status restore_from(const Json& kept);
  Status restore_policies(const Json& names) const;
  Status restore_runs(const Json& sessions);
  Status restore_accounts(const Json& kept, const std::set<std::uint32_t>& runs) const;
  Status restore_scratch(const Json& kept, const std::set<std::uint32_t>& runs) const;
  Status restore_rules(const Json& kept, const std::set<std::uint32_t>& runs) const;
  Status restore_hints(const Json& kept, const std::set<std::uint32_t>& runs) const;
  std::set<std::uint32_t> runs_under_way() const;

  const KeptRegistries of_;
  KeptText* const text_;
  RunSessions sessions_;
  std::mutex mutex_;  // one text at a time, each with all changes before it
  bool was_too_long_ = false;
};

}  // namespace cairn::node
