// SPDX-License-Identifier: Apache-2.0
// Whether a page that leaves a tier is worth a place in a slower one: the chance that a program
// wants it again while it would be there, times the time that this saves, against the time and the
// wear of writing it. A page that is not worth it can be had from the backing store again.
//
// It learns from the segments that have left the tier so far, whether they were written below or
// not. A segment has returned when it comes back before the tier below would have had to give it
// up. It has not returned once as many others have left as that tier has room for. To recognise a
// scan before it has filled a large tier, an overdue segment counts as not returned until it does
// return: when half as many others have left as its own tier has room for, or a quarter more than
// others lately took to return. Each class (how often segments were used before they left) has
// counts of its own; a class of fewer than kSegmentsBehind says nothing. Counts fade, so that the
// program's next phase shows.
//
// Thread safety: none. Ownership: about 64 bytes for each segment whose return is awaited. There
// are at most four for each that the tier has room for (4096 at least): with a larger tier below,
// it follows one in so many segments.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>

namespace cairn {

struct AdmissionCosts {
  double seconds_saved = 0;     // by a read below instead of one of the backing store
  double seconds_to_write = 0;  // what it costs to put it below, with the wear of the device
};

// By how often a segment is expected to be read below, for one write: if it returns with this
// chance each time, it is read chance / (1 - chance) times.
bool is_worth_admitting(double chance, const AdmissionCosts& costs);

class ReturnRates {
 public:
  static constexpr unsigned kClasses = 4;
  static constexpr unsigned kSegmentsBehind = 8;

  // Segments that the tier, and the one below, have room for. Requires: > 0.
  ReturnRates(std::uint32_t room, std::uint64_t room_below);

  static unsigned class_of(std::uint32_t uses);
  // It has left the tier after so many uses.
  void note_left(std::uint64_t segment, std::uint32_t uses);
  // It is used again.
  void note_used(std::uint64_t segment);
  // It is no more: nothing is learned from it.
  void forget(std::uint64_t segment);

  // How likely one of the class returns in time; 1 while nothing is known about it.
  double chance(unsigned page_class) const;
  std::size_t waited_for() const { return waiting_.size(); }

 private:
  static constexpr std::uint32_t kWaitingMin = 4096;
  static constexpr double kFadesAt = 256;
  struct Waiting {
    std::uint64_t number;  // of its leaving
    std::uint8_t page_class;
    bool is_overdue;
  };
  struct Left {
    std::uint64_t segment;
    std::uint64_t number;
  };
  struct Counts {
    double returned = 0;
    double lost = 0;     // for good
    double overdue = 0;  // and waited for
  };
  bool is_looked_at(std::uint64_t segment) const;
  Waiting* find(const Left& left);
  std::uint64_t overdue_after() const;
  void look_at_the_oldest();
  static void fade(Counts* counts);

  const std::uint64_t overdue_after_;  // others that have left, at least
  const std::uint64_t lost_after_;
  const std::uint64_t look_at_one_in_;
  std::uint64_t left_ = 0;
  double return_takes_ = 0;  // others that leave meanwhile: the most of late
  std::unordered_map<std::uint64_t, Waiting> waiting_;
  std::deque<Left> in_time_;  // in the order of their leaving; some have returned
  std::deque<Left> overdue_;
  std::array<Counts, kClasses> counts_;
};

}  // namespace cairn
