// SPDX-License-Identifier: Apache-2.0
// The numbers of a sample, and where each one is read: counters of the run, counters and levels of
// the node.
//
// Thread safety: any thread, once find_columns() has returned. Ownership: borrows everything.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "service/attachment/client_table.h"
#include "service/durability/node_durability.h"

namespace cairn::node {

class NodeGauges {
 public:
  // `predictor_name`: of a number; empty: there is none.
  NodeGauges(const NodeConfig& config, const NodeMemory& memory, const ClientTable& clients,
             const NodeDurability& durability, std::function<std::string(unsigned)> predictor_name)
      : config_(config),
        memory_(memory),
        clients_(clients),
        durability_(durability),
        predictor_name_(std::move(predictor_name)) {}

  // Once predictors have their names, which plugins bring: the columns are the same from then on.
  void find_columns();

  struct Column {
    std::string name;
    bool grows = true;  // a sum since the start; else how much there is at the time
  };
  const std::vector<Column>& columns() const { return columns_; }
  // One number for each column.
  std::vector<std::uint64_t> read(std::uint32_t run) const;

 private:
  void add_columns_of_tiers();

  const NodeConfig& config_;
  const NodeMemory& memory_;
  const ClientTable& clients_;
  const NodeDurability& durability_;
  const std::function<std::string(unsigned)> predictor_name_;
  std::vector<unsigned> predictors_;  // that have names
  std::vector<Column> columns_;
};

}  // namespace cairn::node
