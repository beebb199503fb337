// SPDX-License-Identifier: Apache-2.0
// One host's end of a simulated network. It frames and checks messages as a real one does.
//
// Thread safety: none. Ownership: the network's.
#pragma once

#include "cluster/transport/testing/simulated_network.h"

namespace cairn::cluster {

class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(SimulatedNetwork& network, NodeId self)
      : network_(network), self_{.node = self} {}

  NodeId self() const override { return self_.node; }
  void set_handler(MessageHandler* handler) override { handler_ = handler; }
  void set_identity(Incarnation incarnation, Epoch epoch) override;
  Status send(NodeId peer, MessageType type, std::span<const std::byte> header, Payload payload,
              std::int64_t deadline_ns) override;
  // The network calls handlers when messages arrive: there is nothing to be done here.
  int progress() override { return 0; }

  // For the network.
  void deliver(std::span<const std::byte> frame);
  void tell_down(NodeId peer);
  // A new process knows nothing of the one before.
  void forget();

 private:
  SimulatedNetwork& network_;
  NodeLife self_;
  Epoch epoch_{};
  MessageHandler* handler_ = nullptr;
};

}  // namespace cairn::cluster
