// SPDX-License-Identifier: Apache-2.0
//
// What share/cairn/training.py draws: how the models of a training fit its experiments.
//
// Thread safety: pure functions. Ownership: results are values. Units: seconds.
#pragma once

#include <string>
#include <vector>

#include "service/training/device_training.h"

namespace cairn::cli {

// A line for each access that has a model: JSON with `place`, `access`, `model`, `r_squared` and
// `median_relative` (both cross-validated), and the `measured` and `predicted` seconds of each
// experiment.
std::string picture_lines(const std::string& place,
                          const std::vector<training::AccessModel>& models,
                          const std::vector<training::FinishedExperiment>& finished);

}  // namespace cairn::cli
