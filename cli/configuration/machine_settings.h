// SPDX-License-Identifier: Apache-2.0
//
// The settings that depend on the machine: the capacity of RAM and swap, and directories.
//
// Thread safety: pure reads of the system. Ownership: the results are in the draft.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/configuration/draft.h"

namespace cairn::cli {

// The directories that an option lists, each once: they exist, and Cairn can buffer them.
std::vector<std::string> check_directories(std::string_view option,
                                           const std::vector<SettingItem>& items, Draft& draft);

// The capacity of the RAM tier, as the user says or as suits the machine.
void resolve_ram(Draft& draft);

// The level of durability and the log of the durable tier. Requires: the tiers are resolved.
void resolve_durability(Draft& draft);

// Scratch data that finds no room in the tiers goes below the first scratch directory.
// Requires: tiers, RAM and the scratch directories are resolved.
void resolve_swap(Draft& draft);

// The directory in which nodes remember orders of reads. Cairn makes a directory that is missing
// when there is something to keep.
void resolve_remembered(Draft& draft);

}  // namespace cairn::cli
