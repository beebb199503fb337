// SPDX-License-Identifier: Apache-2.0
// The commands of control.sock, one function each.
//
// Thread safety: any number of connections at once.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "service/control/control_server.h"
#include "service/control/file_commands.h"
#include "service/control/learning_commands.h"
#include "service/control/status_report.h"

namespace cairn::node {

class ControlCommands final : public ControlHandler {
 public:
  explicit ControlCommands(const NodeContext& context)
      : context_(context), status_(context), files_(context), learning_(context) {}

  void on_request(ControlPeer& peer, std::uint64_t session, const Json& request) override;
  void on_close(std::uint64_t session) override;

 private:
  void status(ControlPeer& peer);
  void drain_all(ControlPeer& peer, const Json& request);
  void run_begin(ControlPeer& peer, std::uint64_t session, const Json& request);
  void run_end(ControlPeer& peer, std::uint64_t session, const Json& request);
  void explain(ControlPeer& peer, const Json& request);
  void config(ControlPeer& peer);
  void shutdown(ControlPeer& peer, const Json& request);

  void forget_run(std::uint32_t run) const;
  // Opens the run's account in the tiers.
  Status open_account(std::uint32_t run, const Json& request) const;
  Status take_settings(std::uint32_t run, const Json& request, Json* reply) const;
  DrainOutcome drain_for(ControlPeer& peer, const Json& request);
  // Deaths that the kernel has told of, or is about to tell of, are dealt with when this returns.
  void settle_deaths(std::uint32_t run) const;

  const NodeContext& context_;
  StatusReport status_;
  FileCommands files_;
  LearningCommands learning_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::string> run_of_session_;
};

}  // namespace cairn::node
