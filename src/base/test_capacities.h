// SPDX-License-Identifier: Apache-2.0
// Tables made so small by a test that a few files fill them:
// CAIRN_TEST_CAPACITIES=descriptions=6,holds=9
//
// For tests alone: no program is faster or slower by it, and a node says in its log that it is set.
// Tables of a node are named in service/node/new_memory.cc, those of a process in
// frontends/posix/startup.cc.
//
// Thread safety: any thread, as long as nobody changes the environment.
#pragma once

#include <cstdint>

namespace cairn {

inline constexpr char kTestCapacitiesVariable[] = "CAIRN_TEST_CAPACITIES";

// What the variable says of `table`, at most `usual`, which it is otherwise.
std::uint32_t capacity_of(const char* table, std::uint32_t usual);

}  // namespace cairn
