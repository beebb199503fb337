// SPDX-License-Identifier: Apache-2.0
//
// The models of a device that was trained, fitted again to what its journal has. That takes some
// tenths of a second, and never shows models of an older version of the fit.
//
// Thread safety: pure reads of the system. Ownership: results are values. Units: those of
// equation 8.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "service/training/device_training.h"

namespace cairn::training {

struct TrainedDevice {
  std::string file;                 // the journal
  std::vector<AccessModel> models;  // reads first, then writes
};

// None where this device was never trained. Errors: those of Journal::read() and of
// profiler::identify_directory(), whose messages name the file or the directory.
// Requires: `store_file` is that of the profile store; where it has no place, nothing is trained.
Result<std::optional<TrainedDevice>> trained_device(const std::string& directory,
                                                    const std::string& store_file);

}  // namespace cairn::training
