// SPDX-License-Identifier: Apache-2.0
// Where Cairn keeps what outlives a node and concerns this user on this machine: figures of
// devices, orders in which files were read.
//
// Thread safety: reads the environment; the directory may be made.
#pragma once

#include <string>

namespace cairn {

// $XDG_STATE_HOME/cairn; else for root /var/lib/cairn where that can be written; else
// ~/.local/state/cairn (XDG Base Directory Specification 0.8). Empty when there is no such place.
std::string state_directory();

// `directory` and its parents, as `mkdir -p`. Returns: errno of the last one, or 0.
int make_directories(const std::string& directory);

}  // namespace cairn
