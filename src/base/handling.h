// SPDX-License-Identifier: Apache-2.0
// How a file is treated: buffering mode, flush trigger, durability, placement policy, preferred
// tier. Decided when it is opened, by the rules of the run and the node (base/file_rule.h); kept
// with the object.
//
// Thread safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cairn {

// When the backing store has a write (Hermes, JCST 35(1), 2020, section 3.1).
enum class BufferingMode : std::uint8_t {
  kAsync = 0,  // persistent-async: the write returns when the buffer has it; see FlushTrigger
  kSync,       // persistent-sync: buffer and backing store have it when the write returns
  kScratch,    // never stored
  kBypass      // not buffered
};
inline constexpr unsigned kBufferingModes = 4;
static_assert(static_cast<unsigned>(BufferingMode::kBypass) + 1 == kBufferingModes);

// What starts the flush of a persistent-async file. Whatever it is, data is flushed when the tiers
// run short of room, by fsync(), by a drain and at the end of the run.
enum class FlushTrigger : std::uint8_t {
  kPeriodic = 0,  // flush.delay_ms after it turned dirty, or flush.amount dirty bytes
  kPerOperation,  // each write, also what is outstanding of the file
  kPerFile,       // close
  kOnExit         // the end of the run
};
inline constexpr unsigned kFlushTriggers = 4;
static_assert(static_cast<unsigned>(FlushTrigger::kOnExit) + 1 == kFlushTriggers);

// How much a finished fsync of a file survives.
enum class Durability : std::uint8_t {
  kStore = 0,  // all that the backing store survives
  kNode        // a reboot of this node: the log of a durable tier has it
};
inline constexpr unsigned kDurabilities = 2;
static_assert(static_cast<unsigned>(Durability::kNode) + 1 == kDurabilities);

constexpr const char* name_of(BufferingMode mode) {
  constexpr const char* kNames[kBufferingModes] = {"persistent-async", "persistent-sync", "scratch",
                                                   "bypass"};
  return kNames[static_cast<unsigned>(mode)];
}
constexpr const char* name_of(FlushTrigger trigger) {
  constexpr const char* kNames[kFlushTriggers] = {"periodic", "per-operation", "per-file",
                                                  "on-exit"};
  return kNames[static_cast<unsigned>(trigger)];
}

constexpr const char* name_of(Durability level) {
  constexpr const char* kNames[kDurabilities] = {"store", "node"};
  return kNames[static_cast<unsigned>(level)];
}

// The placement policies that a user may name; plugins have paths, which hold a slash.
inline constexpr std::array<std::string_view, 7> kPlacementPolicyNames = {
    "max-bandwidth", "max-locality",     "hot-data",         "round-robin",
    "random",        "minimize-io-time", "fastest-with-room"};

// Nothing when no mode (trigger) has that name.
constexpr std::optional<BufferingMode> buffering_mode_named(std::string_view name) {
  for (unsigned index = 0; index < kBufferingModes; ++index) {
    if (name == name_of(static_cast<BufferingMode>(index)))
      return static_cast<BufferingMode>(index);
  }
  return std::nullopt;
}
constexpr std::optional<FlushTrigger> flush_trigger_named(std::string_view name) {
  for (unsigned index = 0; index < kFlushTriggers; ++index) {
    if (name == name_of(static_cast<FlushTrigger>(index))) return static_cast<FlushTrigger>(index);
  }
  return std::nullopt;
}
constexpr std::optional<Durability> durability_named(std::string_view name) {
  for (unsigned index = 0; index < kDurabilities; ++index) {
    if (name == name_of(static_cast<Durability>(index))) return static_cast<Durability>(index);
  }
  return std::nullopt;
}

}  // namespace cairn
