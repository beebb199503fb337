// SPDX-License-Identifier: Apache-2.0
// Gives names to values, remembers the values named lately, and for each the name that came behind
// it last. A value keeps its name until another takes its place. A name is never given again, so
// the name of a forgotten value finds nothing.
//
// Bounds: Places values; the one that was not named for longest makes room. Looking a value up
// costs a walk over them, looking a name up costs one comparison.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>

namespace cairn {

template <typename Value, std::uint32_t Places>
class NamedRecently {
 public:
  using Name = std::uint32_t;
  static constexpr Name kNone = 0;

  Name name(const Value& value) {
    Place* oldest = places_.data();
    for (Place& place : places_) {
      if (place.name != kNone && place.value == value) {
        place.named_at = ++namings_;
        return place.name;
      }
      if (place.named_at < oldest->named_at) oldest = &place;
    }
    const auto at = static_cast<std::uint32_t>(oldest - places_.data());
    const Name name = oldest->name == kNone ? Places + at : oldest->name + Places;
    *oldest = Place{value, name, kNone, ++namings_};
    return name;
  }
  // Returns: nullptr when it has none (any more).
  const Value* find(Name name) const {
    const Place& place = places_[name % Places];
    return name != kNone && place.name == name ? &place.value : nullptr;
  }
  // Returns: kNone when it has no name (any more).
  Name name_of(const Value& value) const {
    for (const Place& place : places_) {
      if (place.name != kNone && place.value == value) return place.name;
    }
    return kNone;
  }
  // Behind the one came the other.
  void note_next(Name name, Name next) {
    if (find(name) != nullptr) places_[name % Places].next = next;
  }
  // What came behind it last, or kNone.
  Name next_of(Name name) const {
    return find(name) == nullptr ? kNone : places_[name % Places].next;
  }
  // The one named last of those that `fits` accepts, or kNone.
  template <typename Fits>
  Name latest(Fits fits) const {
    Name latest = kNone;
    std::uint64_t named_at = 0;
    for (const Place& place : places_) {
      if (place.named_at <= named_at || !fits(place.value)) continue;
      latest = place.name;
      named_at = place.named_at;
    }
    return latest;
  }

 private:
  struct Place {
    Value value{};
    Name name = kNone;
    Name next = kNone;
    std::uint64_t named_at = 0;  // 0: free
  };
  std::array<Place, Places> places_{};
  std::uint64_t namings_ = 0;
};

}  // namespace cairn
