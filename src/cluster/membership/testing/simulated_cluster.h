// SPDX-License-Identifier: Apache-2.0
// A cluster of simulated hosts with membership, and what must hold after every event:
//
//   1. A term has one leader at most.
//   2. An epoch has one view, wherever it is known.
//   3. No two nodes serve one partition.
//   4. Nobody serves without being in the newest settled view, or one behind it.
//   5. A node's epoch, its settled epoch and the coordinators' never go back within a life.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/membership/membership_node.h"
#include "cluster/membership/testing/memory_raft_storage.h"
#include "cluster/transport/testing/simulated_network.h"

namespace cairn::cluster {

// What else runs on a simulated host, beside membership: one for each life of it.
class HostedProgram {
 public:
  virtual ~HostedProgram() = default;
  virtual void on_message(const Message& message, std::int64_t now_ns) = 0;
  virtual void tick(std::int64_t now_ns) = 0;
  virtual void on_view(std::int64_t now_ns) = 0;
};
using MakeProgram = std::function<std::unique_ptr<HostedProgram>(NodeId, const Member&)>;

class SimulatedCluster {
 public:
  static constexpr std::uint32_t kSimulatedPartitions = 32;

  SimulatedCluster(std::uint32_t hosts, std::uint64_t seed, const LeaseTerms& terms = {});
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  SimulatedNetwork& network() { return network_; }
  // Every life of every host from now on has such a program. Those that run are begun anew.
  void host(MakeProgram make);
  // Null while the host is down.
  MembershipNode* node(NodeId node);
  std::uint32_t hosts() const { return network_.nodes(); }

  // Up to a time, with a look at what must hold after each event; ends at the first violation.
  void run_until(std::int64_t time_ns);
  void run_for(std::int64_t span_ns) { run_until(network_.now_ns() + span_ns); }
  // Runs until `condition` holds, looked at every millisecond. Returns: how long that took, or -1
  // if it does not hold within `most_ns`.
  std::int64_t run_until(const std::function<bool()>& condition, std::int64_t most_ns);

  // Empty while all holds.
  const std::string& violation() const { return violation_; }
  bool serves(NodeId node, std::uint32_t partition) const;
  // Every host is up and a member of one settled view, and every partition is served.
  bool is_whole() const;
  // The coordinator that leads the highest term; kNone if there is none.
  NodeId leader() const;
  std::uint64_t deaths() const;  // that leaders have declared, in lives that are not over
  std::uint64_t leaders_seen() const { return leaders_.size(); }

 private:
  class Host;
  void begin(NodeId node);
  void end(NodeId node);
  void look();
  void look_at(NodeId node, const Host& host);
  void look_at_view(NodeId node, const View& view);
  void look_at_service();
  void violate(const std::string& what);

  SimulatedNetwork network_;
  MembershipOptions options_;
  MakeProgram make_program_;
  std::vector<std::unique_ptr<MemoryRaftStorage>> storages_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<std::uint64_t, NodeId> leaders_;
  std::map<Epoch, View> views_;
  Epoch settled_{};
  std::string violation_;
};

}  // namespace cairn::cluster
