// SPDX-License-Identifier: Apache-2.0
// What the parts of the service share: borrowed pointers, wired once by service.cc.
//
// Thread safety: constant after start; what it points to is safe by itself.
#pragma once

#include <cstdint>

#include "base/node_config.h"
#include "service/attachment/client_table.h"
#include "service/attachment/reaper.h"
#include "service/attachment/run_table.h"
#include "service/write_back/drain.h"
#include "service/write_back/flusher.h"
#include "service/write_back/store_files.h"

namespace cairn {
class PredictorPlugin;
}  // namespace cairn

namespace cairn::node {

// How the service was asked to end.
class StopRequest {
 public:
  virtual ~StopRequest() = default;
  // Returns at once; the service ends after the answer was sent.
  virtual void request_stop() = 0;
  // The service ends when no client and no run is left and all is stored.
  virtual void request_stop_when_unused() = 0;
  // A run has ended: the last, perhaps, that such an end waits for.
  virtual void note_run_ended() = 0;
};

class AccountBook;
class EventReader;
class HeatBook;
class LearnedReplacement;
class PlacementEngine;
class RuleBook;
class ScratchSpace;
class Prefetcher;
class TraceRecorder;
class UnservedFiles;

struct NodeContext {
  const NodeConfig* config = nullptr;
  NodeMemory* memory = nullptr;
  ClientTable* clients = nullptr;
  AccountBook* accounts = nullptr;
  StoreFiles* files = nullptr;
  Flusher* flusher = nullptr;
  UnservedFiles* unserved = nullptr;
  Reaper* reaper = nullptr;
  RunTable* runs = nullptr;
  RuleBook* rules = nullptr;
  ScratchSpace* scratch = nullptr;
  PlacementEngine* placement = nullptr;
  EventReader* events = nullptr;
  HeatBook* heat = nullptr;
  TraceRecorder* recorder = nullptr;
  const LearnedReplacement* learned = nullptr;  // null: nothing is learned
  const PredictorPlugin* predictor = nullptr;   // null: only those that are built in
  Prefetcher* prefetcher = nullptr;
  StopRequest* stop = nullptr;
  std::int64_t started_ns = 0;
};

// The name of tier `index`: 0 is "ram", and the one past the file tiers "swap".
inline std::string tier_name(const NodeConfig& config, unsigned index) {
  if (index == 0) return "ram";
  return index > config.tiers.size() ? std::string("swap") : config.tiers[index - 1].name;
}

}  // namespace cairn::node
