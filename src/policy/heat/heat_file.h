// SPDX-License-Identifier: Apache-2.0
// The heat map of a file, kept beside the node's state from its last close to its next open, and
// deleted when the node ends.
//
// Format (base/kept_file.h): "CAIRNHEA", then the file's identity (device, inode, birth), its size
// and how scores fade, the epochs and the size of a segment, and for each segment its number of
// runs, the runs (policy/heat/heat_score.h) and its references if there are any; docs/formats.md
// has the bytes.
//
// Errors name the file. A map that is not there: kNotFound. Not a map, cut off, changed, or with
// values that no map has: kInvalid. A map with another version, file or pace: kIncompatible. After
// any of them the caller goes on without a map; reading has changed nothing.
//
// Thread safety: pure functions and the file system. One thread saves the map of a file at a time.
#pragma once

#include <string>
#include <string_view>

#include "base/object_key.h"
#include "base/status.h"
#include "policy/heat/file_heat.h"

namespace cairn {

// No map is larger. A reader looks at nothing that is.
inline constexpr std::size_t kHeatFileBytesMax = std::size_t{1} << 20;

std::string encode_heat(const ObjectKey& key, const FileHeat::State& state);
// Returns the state only if it is the map of this very file. The caller checks whether the file
// still has the same size.
Result<FileHeat::State> decode_heat(std::string_view bytes, const ObjectKey& key,
                                    const HeatPace& pace);

// "0000fd01-00000000000a1b2c-17a3f5e09c4d2b10.heat"
std::string heat_file_name(const ObjectKey& key);

Status save_heat(const std::string& path, const ObjectKey& key, const FileHeat::State& state);
Result<FileHeat::State> load_heat(const std::string& path, const ObjectKey& key,
                                  const HeatPace& pace);
// All maps in a directory, half-written ones too. Returns: how many; none if there is no such
// directory. Errors: of the first that stays.
Result<std::size_t> remove_heat_files(const std::string& directory);

}  // namespace cairn
