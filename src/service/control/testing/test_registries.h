// SPDX-License-Identifier: Apache-2.0
// The registries of one service that a successor takes over, as the service composes them.
//
// Thread safety: as theirs. Ownership: borrows the memory, the clients and the text.
#pragma once

#include <string>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/attachment/client_table.h"
#include "service/control/kept_state.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

struct TestRegistries {
  TestRegistries(NodeMemory& memory, ClientTable& clients, KeptText* text, ScratchBegin begin,
                 const std::string& scratch_directory)
      : accounts(memory, clients, config),
        files(memory),
        flusher(memory, files, clients.service(), FlushOptions(), nullptr),
        placement(memory, std::vector<profiler::TierFigures>(1), nullptr),
        rules(memory, config, accounts,
              [this](const std::string& name) { return placement.number_of(name); }),
        scratch(memory, clients.service(), scratch_directory, begin),
        kept({runs, accounts, placement, rules, scratch, flusher, declarations, hints}, text) {}

  NodeConfig config;
  RunTable runs;
  AccountRegistry accounts;
  StoreFiles files;
  Flusher flusher;
  PlacementEngine placement;
  RuleRegistry rules;
  ScratchSpace scratch;
  OrderDeclarations declarations;
  ArrayHints hints;
  KeptState kept;
};

}  // namespace cairn::node
