// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/testing/simulated_cluster.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::cluster {

// What drives a node's membership in its service: a timer, its messages, its writes.
class SimulatedCluster::Host final : public MessageHandler {
 public:
  Host(SimulatedNetwork& network, NodeId self, RaftStorage* storage,
       const MembershipOptions& options)
      : network_(network),
        self_(self),
        tick_ns_(options.terms.tick_ns),
        membership(network.transport(self), storage, options) {
    network.transport(self).set_handler(this);
    CAIRN_CHECK(membership.start(now_ns()).is_ok());
    tick();
  }

  void on_message(const Message& message) override {
    const bool is_for_membership = membership.on_message(message, now_ns());
    CAIRN_CHECK(is_for_membership || program_ != nullptr);
    if (!is_for_membership) program_->on_message(message, now_ns());
    write_soon();
  }
  void on_peer_down(NodeId peer) override { membership.member().on_peer_down(peer, now_ns()); }

  void host(std::unique_ptr<HostedProgram> program) {
    program_ = std::move(program);
    membership.member().set_observer([this] { program_->on_view(now_ns()); });
  }

 private:
  std::int64_t now_ns() const { return network_.clock_ns(self_); }
  void tick() {
    membership.tick(now_ns());
    if (program_ != nullptr) program_->tick(now_ns());
    write_soon();
    network_.call_at(self_, now_ns() + tick_ns_, [this] { tick(); });
  }
  // A write takes a while, in which the host may crash.
  void write_soon() {
    if (std::exchange(is_writing_, true)) return;
    const std::int64_t takes = network_.random().below(2000) * kMicrosecond;
    network_.call_at(self_, now_ns() + takes, [this] {
      is_writing_ = false;
      membership.progress(now_ns());
    });
  }

  SimulatedNetwork& network_;
  const NodeId self_;
  const std::int64_t tick_ns_;
  bool is_writing_ = false;

 public:
  MembershipNode membership;

 private:
  std::unique_ptr<HostedProgram> program_;

 public:
  // What the look after each event has seen.
  mutable Epoch epoch{};
  mutable Epoch settled{};
  mutable Epoch coordinated{};
};

SimulatedCluster::SimulatedCluster(std::uint32_t hosts, std::uint64_t seed, const LeaseTerms& terms)
    : network_(hosts, seed) {
  options_ = {.hosts = hosts, .terms = terms, .partitions = kSimulatedPartitions};
  storages_.resize(hosts);
  hosts_.resize(hosts);
  for (const NodeId coordinator : coordinators_of(hosts)) {
    storages_[raw(coordinator) - 1] = std::make_unique<MemoryRaftStorage>();
  }
  network_.set_lives([this](NodeId node) { end(node); }, [this](NodeId node) { begin(node); });
  for (std::uint32_t i = 1; i <= hosts; ++i) begin(NodeId{i});
}

SimulatedCluster::~SimulatedCluster() {
  for (std::uint32_t i = 1; i <= hosts(); ++i) end(NodeId{i});
}

void SimulatedCluster::begin(NodeId node) {
  options_.seed = network_.random().next();
  const std::size_t place = raw(node) - 1;
  hosts_[place] = std::make_unique<Host>(network_, node, storages_[place].get(), options_);
  if (make_program_) hosts_[place]->host(make_program_(node, hosts_[place]->membership.member()));
}

void SimulatedCluster::host(MakeProgram make) {
  make_program_ = std::move(make);
  for (std::uint32_t i = 1; i <= hosts(); ++i) {
    if (hosts_[i - 1] == nullptr) continue;
    hosts_[i - 1]->host(make_program_(NodeId{i}, hosts_[i - 1]->membership.member()));
  }
}

void SimulatedCluster::end(NodeId node) {
  network_.transport(node).set_handler(nullptr);
  hosts_[raw(node) - 1].reset();
}

MembershipNode* SimulatedCluster::node(NodeId node) {
  CAIRN_CHECK(raw(node) >= 1 && raw(node) <= hosts_.size());
  const std::unique_ptr<Host>& host = hosts_[raw(node) - 1];
  return host == nullptr ? nullptr : &host->membership;
}

void SimulatedCluster::run_until(std::int64_t time_ns) {
  if (!violation_.empty()) return;
  network_.run_until(time_ns, [this] { look(); });
}

std::int64_t SimulatedCluster::run_until(const std::function<bool()>& condition,
                                         std::int64_t most_ns) {
  const std::int64_t begin = network_.now_ns();
  while (network_.now_ns() - begin <= most_ns && violation_.empty()) {
    if (condition()) return network_.now_ns() - begin;
    run_for(kMillisecond);
  }
  return -1;
}

void SimulatedCluster::violate(const std::string& what) {
  if (!violation_.empty()) return;
  violation_ = "at " + std::to_string(network_.now_ns()) + " ns: " + what;
  network_.note("VIOLATION: " + what);
}

void SimulatedCluster::look() {
  if (!violation_.empty()) return;
  for (std::uint32_t i = 1; i <= hosts(); ++i) {
    if (hosts_[i - 1] != nullptr) look_at(NodeId{i}, *hosts_[i - 1]);
  }
  look_at_service();
}

void SimulatedCluster::look_at(NodeId node, const Host& host) {
  const Member& member = host.membership.member();
  if (member.view().epoch < host.epoch || member.settled() < host.settled) {
    violate("the epoch of node " + std::to_string(raw(node)) + " has gone back");
  }
  if (member.view().epoch > host.epoch) look_at_view(node, member.view());
  host.epoch = member.view().epoch;
  host.settled = member.settled();
  settled_ = std::max(settled_, member.settled());
  const Coordinator* coordinator = host.membership.coordinator();
  if (coordinator == nullptr) return;
  const View& agreed = coordinator->state().view();
  if (agreed.epoch < host.coordinated) {
    violate("the epoch of coordinator " + std::to_string(raw(node)) + " has gone back");
  }
  if (agreed.epoch > host.coordinated) look_at_view(node, agreed);
  host.coordinated = agreed.epoch;
  settled_ = std::max(settled_, coordinator->state().settled());
  const Consensus& consensus = *host.membership.consensus();
  if (!consensus.is_leader()) return;
  const auto [leader, is_new] = leaders_.emplace(consensus.term(), node);
  if (leader->second != node) {
    violate("term " + std::to_string(consensus.term()) + " has two leaders");
  }
  if (is_new) network_.note(std::to_string(raw(node)) + " leads");
}

void SimulatedCluster::look_at_view(NodeId node, const View& view) {
  const auto [known, is_new] = views_.emplace(view.epoch, view);
  if (known->second != view) {
    violate("epoch " + std::to_string(raw(view.epoch)) + " has two views, one at node " +
            std::to_string(raw(node)));
  }
  std::string text =
      std::to_string(raw(node)) + " has epoch " + std::to_string(raw(view.epoch)) + ":";
  for (const NodeId member : view.nodes()) text += " " + std::to_string(raw(member));
  network_.note(text);
}

void SimulatedCluster::look_at_service() {
  std::vector<NodeId> owners(kSimulatedPartitions, NodeId::kNone);
  for (std::uint32_t i = 1; i <= hosts(); ++i) {
    const NodeId node{i};
    if (hosts_[i - 1] == nullptr) continue;
    const Member& member = hosts_[i - 1]->membership.member();
    if (!member.may_serve(network_.clock_ns(node))) continue;
    const auto newest = views_.find(settled_);
    if (newest != views_.end() && member.view().epoch <= settled_ &&
        !newest->second.has({node, member.incarnation()})) {
      violate("node " + std::to_string(i) + " serves, and is not in view " +
              std::to_string(raw(settled_)) + ", which is settled");
    }
    for (std::uint32_t p = 0; p < kSimulatedPartitions; ++p) {
      if (!serves(node, p)) continue;
      if (owners[p] != NodeId::kNone) {
        violate("nodes " + std::to_string(raw(owners[p])) + " and " + std::to_string(i) +
                " serve partition " + std::to_string(p));
      }
      owners[p] = node;
    }
  }
}

bool SimulatedCluster::serves(NodeId node, std::uint32_t partition) const {
  const std::unique_ptr<Host>& host = hosts_[raw(node) - 1];
  return host != nullptr && host->membership.member().serves(static_cast<PartitionId>(partition),
                                                             network_.clock_ns(node));
}

bool SimulatedCluster::is_whole() const {
  for (std::uint32_t i = 1; i <= hosts(); ++i) {
    if (hosts_[i - 1] == nullptr) return false;
    const Member& member = hosts_[i - 1]->membership.member();
    if (!member.may_serve(network_.clock_ns(NodeId{i}))) return false;
    if (member.view().members.size() != hosts() || member.settled() != member.view().epoch) {
      return false;
    }
  }
  for (std::uint32_t p = 0; p < kSimulatedPartitions; ++p) {
    bool is_served = false;
    for (std::uint32_t i = 1; i <= hosts(); ++i) is_served |= serves(NodeId{i}, p);
    if (!is_served) return false;
  }
  return true;
}

NodeId SimulatedCluster::leader() const {
  NodeId found = NodeId::kNone;
  std::uint64_t term = 0;
  for (std::uint32_t i = 1; i <= hosts(); ++i) {
    const Consensus* consensus =
        hosts_[i - 1] == nullptr ? nullptr : hosts_[i - 1]->membership.consensus();
    if (consensus == nullptr || !consensus->is_leader() || consensus->term() < term) continue;
    term = consensus->term();
    found = NodeId{i};
  }
  return found;
}

std::uint64_t SimulatedCluster::deaths() const {
  std::uint64_t deaths = 0;
  for (const std::unique_ptr<Host>& host : hosts_) {
    if (host != nullptr && host->membership.coordinator() != nullptr) {
      deaths += host->membership.coordinator()->deaths();
    }
  }
  return deaths;
}

}  // namespace cairn::cluster
