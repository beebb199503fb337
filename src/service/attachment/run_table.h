// SPDX-License-Identifier: Apache-2.0
// The runs of a node: one `cairn run` each, from run-begin to run-end.
//
// Thread safety: all functions from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace cairn::node {

struct Run {
  std::string id;  // the launcher's process id, as in CAIRN_RUN
  std::vector<std::string> command_line;
  std::string directory;
  std::int64_t began_ns = 0;
  std::uint64_t flushed_bytes_before = 0;  // the service's own counter when the run began

  std::uint32_t number() const;
};

class RunTable {
 public:
  // Returns false when a run of this id is there already.
  bool begin(Run run);
  std::optional<Run> find(const std::string& id) const;
  std::optional<Run> end(const std::string& id);
  std::vector<Run> all() const;
  bool is_empty() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Run> runs_;
};

}  // namespace cairn::node
