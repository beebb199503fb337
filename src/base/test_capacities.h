// SPDX-License-Identifier: Apache-2.0
// A test makes tables so small that a few files fill them, and lets a node lose events:
// CAIRN_TEST_CAPACITIES=descriptions=6,holds=9,event_percent=50
//
// For tests alone: no user needs it, and a node says in its log that the variable is set.
// service/node/service_memory.cc names the tables of a node, frontends/posix/startup.cc those of a
// process; cli/commands/node_service_command.cc reads the percentage of events that are kept,
// service/organizer/uring_writer.cc how long a device may take.
//
// Thread safety: any thread, as long as nobody changes the environment.
#pragma once

#include <cstdint>

namespace cairn {

inline constexpr char kTestCapacitiesVariable[] = "CAIRN_TEST_CAPACITIES";

// Returns: the number that the variable has for `table`, at most `usual`; else `usual`.
std::uint32_t capacity_of(const char* table, std::uint32_t usual);

}  // namespace cairn
