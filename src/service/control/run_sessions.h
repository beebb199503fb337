// SPDX-License-Identifier: Apache-2.0
// Which run each connection of control.sock stands for, and what its last requests about runs were
// answered. Both outlive a service: a launcher that has not read the answer asks its successor the
// same again, and a run must neither begin nor end twice.
//
// Thread safety: all functions from any thread. Ownership: values.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "service/attachment/run_table.h"
#include "service/control/json.h"

namespace cairn::node {

class RunSessions {
 public:
  // The answer to the request of this number; 0: a request without one, which nobody repeats.
  struct Answer {
    std::uint64_t request = 0;
    Json reply;
  };
  // A run as its connection knows it.
  struct Begun {
    Run run;
    std::uint32_t weight = 0;  // against other runs in write-back
  };

  // The run has begun, and the connection stands for it.
  void begin(std::uint64_t session, const Begun& begun, const Answer& answer);
  // The run has ended, as `session` asked; it is usually that which has begun it.
  void end(std::uint64_t session, const std::string& run, const Answer& answer);
  // The connection is closed. Returns: the run that it stood for; empty: none.
  std::string close(std::uint64_t session);
  // What the request was answered already; nothing for requests without a number.
  std::optional<Json> answer_to(std::uint64_t session, std::uint64_t request) const;
  // All connections that stand for a run, or have been answered.
  std::vector<std::uint64_t> all() const;

  // One text for each of them, that add() takes.
  std::vector<std::string> snapshot() const;
  // Takes over a connection of a dead service. Returns: its run, if it stands for one.
  // Errors: kInvalid, naming what is wrong.
  Result<std::optional<Begun>> add(const std::string& text);

 private:
  // A launcher sends two requests about its run on one connection.
  static constexpr std::size_t kAnswersMax = 2;
  struct Entry {
    std::optional<Begun> begun;
    std::deque<Answer> answers;
    std::string text;  // made when the entry changes: many runs begin and end while others stay
  };
  static void note(Entry* entry, std::uint64_t session, const Answer& answer);

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
};

}  // namespace cairn::node
