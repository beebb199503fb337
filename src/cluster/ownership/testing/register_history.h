// SPDX-License-Identifier: Apache-2.0
// Whether reads and writes of one block look as if each had happened at one moment between its
// begin and its end: linearizability of a register, for writes that are all different.
//
// With different writes each read names the write that it has seen, which makes the question easy
// (Gibbons, Korach: "Testing Shared Memories", SIAM Journal on Computing 26(4), 1997, section 4).
// A write and its reads are a cluster; f is the first end in it, s the last begin. If f < s the
// value was there from f to s at least (a forward zone), else it fits anywhere in [s, f] (a
// backward zone). The history is linearizable if and only if no read ends before its write begins,
// no two forward zones overlap, and no backward zone lies within a forward one.
//
// Thread safety: none. Units: any time that all processes share.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cairn::cluster {

class RegisterHistory {
 public:
  // The value before the first write.
  static constexpr std::uint64_t kFirstValue = 0;

  RegisterHistory();

  // A write that has begun may take effect at any time, unless it has ended.
  // Requires: a value that was not written before.
  void begin_write(std::uint64_t value, std::int64_t begin);
  void end_write(std::uint64_t value, std::int64_t end);
  void read(std::uint64_t value, std::int64_t begin, std::int64_t end);

  std::uint64_t reads() const { return reads_; }
  // Empty if the history is linearizable; else why it is not.
  std::string problem() const;

 private:
  struct Cluster {
    std::int64_t write_begin;
    std::int64_t first_end;
    std::int64_t last_begin;
    bool has_effect;  // the write has ended, or was read
    bool is_read_too_early = false;
  };
  std::map<std::uint64_t, Cluster> clusters_;
  std::string unknown_;
  std::uint64_t reads_ = 0;
};

}  // namespace cairn::cluster
