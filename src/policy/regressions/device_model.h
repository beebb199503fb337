// SPDX-License-Identifier: Apache-2.0
// How long a device takes, by the better of two models: the paper's regression (equation 8 or 9 of
// "Two-tier models", with the terms that choose_terms() keeps) and the physical one.
//
// Both are cross-validated on the same folds, the choice of terms within each fold; the model with
// the smaller median relative error is used, and its error stands beside it. A regression weighs
// seconds and so fits long experiments; relative errors weigh all of them alike.
//
// Thread safety: pure functions and values. Units: seconds; the equation's for points.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "policy/regressions/cross_validation.h"
#include "policy/regressions/physical_device.h"
#include "policy/regressions/term_choice.h"

namespace cairn {

enum class DeviceModelKind : std::uint8_t { kRegression, kPhysical };

// A point of a device equation as the physical model sees it. Requires: a value per parameter of
// the equation's formula, in its order.
DeviceWorkload workload_of(DeviceClass device_class, std::span<const double> point);

// At least the model in use is there, with its error.
struct DeviceModel {
  DeviceClass device_class = DeviceClass::kSolidState;
  DeviceModelKind kind = DeviceModelKind::kPhysical;  // in use
  std::optional<ChosenTerms> regression;
  std::optional<PhysicalFit> physical;
  std::optional<CrossValidatedError> regression_error;
  std::optional<CrossValidatedError> physical_error;
  std::vector<ParameterRange> training_ranges;

  const CrossValidatedError& error() const;
  // No time is below 0, whatever a regression says.
  Prediction predict(std::span<const double> point) const;
  bool is_inside_range(std::span<const double> point) const {
    return is_inside(training_ranges, point);
  }
  // Lines: which model is in use, both errors, the table or the device.
  std::string text() const;
};

// Reads and writes are two models, as in the paper: `observations` are one kind.
// Errors: kInvalid, when neither model can be fitted and cross-validated; says why for both.
Result<DeviceModel> choose_device_model(const DeviceEquation& equation,
                                        const Observations& observations,
                                        const FoldPlan& plan = {});

}  // namespace cairn
