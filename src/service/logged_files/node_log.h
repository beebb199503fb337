// SPDX-License-Identifier: Apache-2.0
// The durable log of a node, where it has a durable tier, and what the log has of its files and of
// their names.
//
// Thread safety: open() and close() by the composing thread. Ownership: owns all three.
#pragma once

#include <memory>
#include <string>

#include "base/node_config.h"
#include "base/status.h"
#include "service/logged_files/logged_files.h"
#include "service/logged_files/logged_names.h"

namespace cairn::node {

class NodeLog {
 public:
  NodeLog() = default;
  // Does nothing where no tier is durable. Requires: what an earlier node left has been replayed.
  Status open(const NodeConfig& config, const NodeMemory& memory, Owner self);
  // Requires: nobody uses the files and the names any more.
  void close();
  bool is_open() const { return log_ != nullptr; }
  bool has_failed() const { return is_open() && !log_->health(); }
  LoggedFiles& files() const { return *files_; }
  LoggedNames& names() const { return *names_; }
  durable::DurableLog& log() const { return *log_; }

 private:
  std::unique_ptr<durable::DurableLog> log_;
  std::unique_ptr<LoggedFiles> files_;
  std::unique_ptr<LoggedNames> names_;
};

}  // namespace cairn::node
