// SPDX-License-Identifier: Apache-2.0
// A network of simulated hosts: a discrete-event simulation in one thread, whose every choice comes
// from one seed. The same seed and the same calls give the same events to the nanosecond.
//
// Time is simulated: nothing waits, and a minute of a quiet cluster costs milliseconds. What may
// go wrong, each at will or by FaultSchedule (testing/fault_schedule.h):
//
//   a message      is delayed, dropped, repeated, damaged, overtaken     set_faults()
//   a direction    carries nothing; its ends hear no error               cut(), heal()
//   a host         loses its memory, and may come back with none         crash(), restart()
//   a process      stops (SIGSTOP); its timers and messages wait         pause(), resume()
//   a clock        runs fast or slow, and begins anywhere                set_clock_rate()
//
// The schedule is what happened, a line each, kept if asked for; its fingerprint always is.
//
// Thread safety: none. Ownership: the network owns the transports, and outlives the hosts' code.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random_source.h"
#include "cluster/transport/frame.h"

namespace cairn::cluster {

inline constexpr std::int64_t kMicrosecond = 1'000;
inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kSecond = 1'000'000'000;

// The faults of messages between two hosts; those of a host to itself have none.
struct LinkFaults {
  std::int64_t delay_min_ns = 4 * kMicrosecond;
  std::int64_t delay_max_ns = 60 * kMicrosecond;
  // In thousandths of the messages.
  std::uint32_t dropped = 0;
  std::uint32_t repeated = 0;
  std::uint32_t damaged = 0;
  std::uint32_t late = 0;  // delayed by up to late_max_ns: overtaken by those behind it
  std::int64_t late_max_ns = 400 * kMillisecond;
};

struct NetworkCounts {
  std::uint64_t sent = 0;
  std::uint64_t delivered = 0;
  std::uint64_t dropped = 0;  // by chance, by a cut, or because the host was down
  std::uint64_t repeated = 0;
  std::uint64_t damaged = 0;
  std::uint64_t expired = 0;  // their deadline had passed
};

class SimulatedTransport;

class SimulatedNetwork {
 public:
  // Hosts 1 to `nodes`, all running.
  SimulatedNetwork(std::uint32_t nodes, std::uint64_t seed);
  ~SimulatedNetwork();
  SimulatedNetwork(const SimulatedNetwork&) = delete;
  SimulatedNetwork& operator=(const SimulatedNetwork&) = delete;

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(hosts_.size()); }
  RandomSource& random() { return random_; }
  Transport& transport(NodeId node);

  // The time that no host knows, from 0 on; and a host's clock.
  std::int64_t now_ns() const { return now_ns_; }
  std::int64_t clock_ns(NodeId node) const;
  // From now on `parts_per_million` faster than time, or slower.
  void set_clock_rate(NodeId node, std::int32_t parts_per_million);

  // Calls at a time of the simulation, and of a host's clock. The latter dies with the host's life,
  // and waits while it is paused.
  void at(std::int64_t time_ns, std::function<void()> call);
  void call_at(NodeId node, std::int64_t clock_ns, std::function<void()> call);
  // Everything that happens up to that time. `look`, if any, follows each event.
  void run_until(std::int64_t time_ns, const std::function<void()>& look = {});

  void set_faults(const LinkFaults& faults) { faults_ = faults; }
  // One direction. Messages that are under way arrive.
  void cut(NodeId from, NodeId to);
  void heal(NodeId from, NodeId to);
  void heal_all();
  // `on_crash` and `on_restart` let the owner of a host's code destroy and make it.
  void set_lives(std::function<void(NodeId)> on_crash, std::function<void(NodeId)> on_restart);
  void crash(NodeId node);
  void restart(NodeId node);
  void pause(NodeId node);
  void resume(NodeId node);
  bool is_up(NodeId node) const { return host(node).is_up; }
  bool is_paused(NodeId node) const { return host(node).is_paused; }
  bool is_cut(NodeId from, NodeId to) const { return cuts_.contains({from, to}); }

  const NetworkCounts& counts() const { return counts_; }
  void keep_schedule() { keeps_schedule_ = true; }
  const std::vector<std::string>& schedule() const { return schedule_; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  // Adds a line to the schedule.
  void note(const std::string& what);

 private:
  friend class SimulatedTransport;
  struct Host {
    bool is_up = true;
    bool is_paused = false;
    std::uint32_t life = 1;
    // The clock: clock_ns at time_ns, and how fast it runs from then on.
    std::int64_t base_clock_ns = 0;
    std::int64_t base_time_ns = 0;
    std::int32_t parts_per_million = 0;
    std::vector<std::function<void()>> held;  // what has happened while it was paused
  };
  struct Event {
    std::int64_t time_ns;
    std::uint64_t number;
    NodeId node;  // whose code is called; kNone: nobody's
    std::uint32_t life;
    std::function<void()> call;
    bool operator>(const Event& other) const {
      return std::pair(time_ns, number) > std::pair(other.time_ns, other.number);
    }
  };

  Host& host(NodeId node);
  const Host& host(NodeId node) const;
  void push(std::int64_t time_ns, NodeId node, std::function<void()> call);
  bool happens(std::uint32_t thousandths);
  void carry(NodeId from, NodeId to, std::int64_t deadline_clock_ns, Bytes frame);
  void arrive(NodeId from, NodeId to, std::int64_t deadline_clock_ns, const Bytes& frame);
  void refuse(NodeId from, NodeId to);

  RandomSource random_;
  std::int64_t now_ns_ = 0;
  std::uint64_t next_number_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<SimulatedTransport>> transports_;
  LinkFaults faults_;
  std::set<std::pair<NodeId, NodeId>> cuts_;
  std::function<void(NodeId)> on_crash_;
  std::function<void(NodeId)> on_restart_;
  NetworkCounts counts_;
  bool keeps_schedule_ = false;
  std::vector<std::string> schedule_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace cairn::cluster
