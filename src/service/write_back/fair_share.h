// SPDX-License-Identifier: Apache-2.0
// The backing store's bandwidth shared between runs by weight: start-time fair queueing (Goyal,
// Vin, Cheng, SIGCOMM 1996) over the turns of the flusher.
//
// Each run has a virtual time that advances by bytes / weight with every turn it gets; whose
// virtual time is least goes next. A run that had nothing to store for a while joins at the virtual
// time of those at work: it is owed nothing for its silence, and nobody starves. Among runs that
// are about equally due, one that computes goes before one that is in the middle of its I/O: its
// memory bandwidth and its readers have no use for the device now.
//
// Thread safety: none; the caller has a lock. Ownership: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

namespace cairn::node {

class FairShare {
 public:
  static constexpr std::uint32_t kWeightDefault = 100;
  static constexpr std::uint32_t kWeightMax = 10'000;
  // As far as this many bytes of a run of default weight, order may follow the runs' phases.
  static constexpr std::uint64_t kSlackBytes = 64 << 20;

  struct Candidate {
    std::uint32_t run = 0;
    bool in_io = false;  // of the run: it has just made file calls
  };

  void set_weight(std::uint32_t run, std::uint32_t weight);
  // The run has ended: its weight and virtual time are forgotten.
  void forget(std::uint32_t run);
  // Which of the candidates goes next; of equals the first. Requires: at least one.
  std::size_t choose(std::span<const Candidate> candidates);
  // A turn of the run begins that will store about this much.
  void charge(std::uint32_t run, std::uint64_t bytes);
  // The bytes that a turn has stored in the end, for the status.
  void note_stored(std::uint32_t run, std::uint64_t bytes) { accounts_[run].stored += bytes; }
  std::uint32_t weight_of(std::uint32_t run) const;
  std::uint64_t stored_bytes(std::uint32_t run) const;

 private:
  double time_of(std::uint32_t run) const;

  struct Account {
    std::uint32_t weight = kWeightDefault;
    double time = 0;  // bytes / weight
    std::uint64_t stored = 0;
  };
  std::map<std::uint32_t, Account> accounts_;
  double now_ = 0;  // virtual time of the turn that began last
};

}  // namespace cairn::node
