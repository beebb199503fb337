// SPDX-License-Identifier: Apache-2.0
// What the service does about durability beyond the store: its log, who answers from it, and who
// frees it. Without a durable tier it is empty, and everything goes to the store.
//
// Thread safety: start(), finish() and stop() by the composing thread; all others from any thread.
// Ownership: owns its threads; borrows the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/node_config.h"
#include "service/durability/checkpoints.h"
#include "service/durability/dirty_keeper.h"
#include "service/durability/durability_counts.h"
#include "service/durability/durability_worker.h"
#include "service/durability/retirement.h"
#include "service/logged_files/node_log.h"

namespace cairn::node {

struct DurabilityFigures {
  bool has_log = false;
  std::string trouble;  // of the log; empty: none
  durable::LogFigures log;
  std::uint64_t files = 0;  // in the log
  const DurabilityCounts* counts = nullptr;
  double checkpoint_age_seconds = 0;  // of the last one; 0: there was none
};

class NodeDurability {
 public:
  NodeDurability(const NodeMemory& memory, StoreFiles& files, Flusher& flusher, NodeLog& log)
      : memory_(memory), files_(files), flusher_(flusher), log_(log) {}
  ~NodeDurability() { stop(); }
  NodeDurability(const NodeDurability&) = delete;
  NodeDurability& operator=(const NodeDurability&) = delete;

  // Requires: the log is open, where there is to be one.
  void start(const NodeConfig& config);
  // By a successor, before anybody is answered: what the log has of files that are still known.
  void inherit();
  // Nothing is dirty any more: the log is emptied. Returns: false where something stays in it, of
  // this node or of an earlier one; the node's log has why.
  bool finish();
  void stop();

  void make_durable(Asker asker, ObjectIndex object);
  void note_descriptor(ObjectIndex object);
  void note_cut(Asker asker, ObjectIndex object, std::uint64_t size);
  void note_renamed(ObjectIndex object);
  void note_removed(ObjectIndex object);
  // The names of a directory are to be durable; `in_store`: in the store, not in the log.
  void make_names_durable(Asker asker, UniqueFd directory, bool in_store);
  // Everything of the file system (0: of all) has just been stored, and is to be durable there.
  int retire_all(std::uint64_t device);
  bool has_log() const { return keeper_ != nullptr; }
  // The node may be killed from here on: the log gets what is dirty now, and what turns dirty later
  // before it is stored. Does not wait. Requires: has_log().
  void begin_keeping();
  // What the log has of the files that are dirty now; none if the store does not answer in
  // `patience`. Requires: the same.
  std::optional<DirtyLogging> keep_dirty(std::chrono::milliseconds patience);
  DurabilityFigures figures() const;

 private:
  const NodeMemory& memory_;
  StoreFiles& files_;
  Flusher& flusher_;
  NodeLog& log_;
  DurabilityCounts counts_;
  RequestWorker storing_;
  std::unique_ptr<Retirement> retirement_;    // null: there is no log
  std::unique_ptr<DurabilityWorker> worker_;  // the same
  // The same for names, which look into the store: if that does not answer, the files of other
  // stores are not kept waiting.
  std::unique_ptr<DurabilityWorker> name_worker_;
  std::unique_ptr<DirtyKeeper> keeper_;       // the same
  std::unique_ptr<Checkpoints> checkpoints_;  // null: there are none
};

}  // namespace cairn::node
