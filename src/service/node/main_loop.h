// SPDX-License-Identifier: Apache-2.0
// The service's main thread: sleeps until somebody asks for the end, keeps the node reachable
// meanwhile, and ends a node that nobody uses.
//
// Thread safety: serve() in the main thread, the rest from any. Ownership: borrows everything.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "service/attachment/client_table.h"
#include "service/attachment/run_table.h"
#include "service/control/stop_request.h"
#include "service/keeping/kept_descriptors.h"
#include "service/node/deferred_end.h"
#include "service/node/end_signals.h"
#include "service/node/last_drain.h"
#include "service/node/node_directory.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

// The parts that the loop works with; all of them outlive it.
struct MainLoopParts {
  const std::string& name;  // of the node
  NodeDirectory& directory;
  const LastDrain& drain;
  const ClientTable& clients;
  const RunTable& runs;
  // The sockets' names are gone: both servers listen at new ones.
  std::function<Status()> listen_again;
};

class MainLoop final : public StopRequest {
 public:
  enum class Ending : std::uint8_t {
    kDrained,  // what could be stored is stored
    kAtOnce    // the user does not wait
  };

  explicit MainLoop(MainLoopParts parts);

  // Sleeps until somebody asks for the end. `launcher` is a pipe whose other end the launcher of a
  // private node holds as long as it lives.
  Ending serve(EndSignals& signals, KeptFd launcher);

  void request_stop() override;
  void request_stop_when_unused() override;
  void note_run_ended() override;
  // A client is gone: the last, perhaps, that an end waits for.
  void note_departure();

 private:
  void wake() const;
  void take_wakes() const;
  int wait_ms() const;
  bool is_unreachable() const;
  void keep_reachable();
  bool is_unused() const;
  bool is_unused_and_stored(EndSignals& signals);

  const MainLoopParts with_;
  UniqueFd stop_event_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> unwanted_{false};  // the launcher of a private node is gone
  DeferredEnd end_;
  // Looks at its directory, one after the other, that have found it incomplete.
  static constexpr unsigned kUnreachableLooks = 20;
  unsigned unreachable_looks_ = 0;
};

}  // namespace cairn::node
