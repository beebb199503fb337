// SPDX-License-Identifier: Apache-2.0
// A node service in a process of its own, for tests, with its directories; everything is gone when
// it is destroyed.
//
// Thread safety: one thread. Ownership: owns the service process and the temporary directory.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/node_config.h"

namespace cairn::testing {

struct NodeOptions {
  std::uint64_t ram_bytes = 4 << 20;
  std::uint64_t file_tier_bytes = 0;
  std::uint32_t clients_max = 64;
  std::uint32_t flush_delay_ms = 20;
  std::uint32_t flush_retry_ms = 50;
};

class NodeProcess {
 public:
  // Forks: call before the first thread of the test is made.
  explicit NodeProcess(const NodeOptions& options);
  ~NodeProcess();
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;

  // The line that the service wrote when it was ready, or why it was not.
  const std::string& ready_line() const { return ready_line_; }
  pid_t pid() const { return pid_; }
  // Nothing where it has ended: kill(2) would mean every process of the machine.
  void signal(int number) const;
  std::string client_socket() const { return config_.node_directory + "/client.sock"; }
  std::string log() const;
  // Where test files are made.
  std::string data_directory() const { return directory_ + "/data"; }

  // One command; the "done" or "error" line.
  nlohmann::json request(const nlohmann::json& request, int seconds = 0) const;
  nlohmann::json status() const { return request({{"command", "status"}})["status"]; }
  // The same of a service that may not answer at all: null then.
  nlohmann::json status_within(int seconds) const;
  // False once it has ended by itself; its exit status is lost then.
  bool is_running();
  // Waits until the slots of all departed clients are free again.
  bool wait_until_reaped(unsigned clients_left, double seconds) const;
  // Asks the service to end. Returns its exit status, -1 when it does not end.
  int shut_down();
  int wait_for_exit(double seconds);

 private:
  std::string directory_;
  NodeConfig config_;
  std::string ready_line_;
  pid_t pid_ = -1;
};

}  // namespace cairn::testing
