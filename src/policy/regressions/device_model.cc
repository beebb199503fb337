// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/device_model.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {
namespace {

std::vector<MeasuredWorkload> workloads_of(DeviceClass device_class,
                                           const Observations& observations) {
  std::vector<MeasuredWorkload> workloads;
  for (std::size_t row = 0; row < observations.rows(); ++row) {
    workloads.push_back(
        {workload_of(device_class, observations.point(row)), observations.response(row)});
  }
  return workloads;
}

Result<PointModel> train_regression(const ModelFormula& formula, const Observations& training) {
  Result<ChosenTerms> chosen = choose_terms(formula, training);
  if (!chosen) return chosen.status();
  return PointModel([regression = std::move(chosen->regression)](std::span<const double> point) {
    return std::max(0.0, regression.predict(point).value);
  });
}

Result<PointModel> train_physical(DeviceClass device_class, const Observations& training) {
  const Result<PhysicalFit> fit = fit_physical_device(workloads_of(device_class, training));
  if (!fit) return fit.status();
  return PointModel([device_class, device = fit->device](std::span<const double> point) {
    return device.seconds(workload_of(device_class, point));
  });
}

// Fits and validates both models, as far as each can be.
class DeviceModelChoice {
 public:
  DeviceModelChoice(const DeviceEquation& equation, const Observations& observations,
                    const FoldPlan& plan)
      : formula_(formula_of(equation)), observations_(observations), plan_(plan) {
    CAIRN_DCHECK(formula_.parameters.size() == observations.parameters());
    model_.device_class = equation.device_class;
  }

  Result<DeviceModel> run() {
    const Status regression = fit_regression();
    const Status physical = fit_physical();
    if (!regression && !physical) {
      return Status(StatusCode::kInvalid,
                    "regression: " + regression.message() + "; physical: " + physical.message());
    }
    const bool is_regression =
        !physical || (regression && model_.regression_error->median_relative <
                                        model_.physical_error->median_relative);
    model_.kind = is_regression ? DeviceModelKind::kRegression : DeviceModelKind::kPhysical;
    model_.training_ranges = ranges_of(observations_);
    return std::move(model_);
  }

 private:
  Status fit_regression() {
    Result<ChosenTerms> chosen = choose_terms(formula_, observations_);
    if (!chosen) return chosen.status();
    const Result<CrossValidatedError> error = cross_validate(
        [this](const Observations& training) { return train_regression(formula_, training); },
        observations_, plan_);
    if (!error) return error.status();
    model_.regression = std::move(chosen.value());
    model_.regression_error = *error;
    return Status::ok();
  }

  Status fit_physical() {
    const DeviceClass device_class = model_.device_class;
    const Result<PhysicalFit> fit = fit_physical_device(workloads_of(device_class, observations_));
    if (!fit) return fit.status();
    const Result<CrossValidatedError> error = cross_validate(
        [device_class](const Observations& training) {
          return train_physical(device_class, training);
        },
        observations_, plan_);
    if (!error) return error.status();
    model_.physical = *fit;
    model_.physical_error = *error;
    return Status::ok();
  }

  const ModelFormula formula_;
  const Observations& observations_;
  const FoldPlan plan_;
  DeviceModel model_;
};

}  // namespace

DeviceWorkload workload_of(DeviceClass device_class, std::span<const double> point) {
  DeviceWorkload workload;
  if (device_class == DeviceClass::kSolidState) {
    CAIRN_DCHECK(point.size() == 4);  // x1, x3, x4, x5
    workload.threads = point[0];
    workload.request_bytes = point[1];
    workload.requests = point[2];
    return workload;
  }
  CAIRN_DCHECK(point.size() == 5);  // x3, x4, x5, x1, x2
  workload.threads = point[3];
  workload.devices = point[4];
  workload.requests = point[0] * workload.devices;
  // The last stripe may be cut, so the file's size counts.
  workload.request_bytes = point[2] / workload.requests;
  return workload;
}

const CrossValidatedError& DeviceModel::error() const {
  const auto& error = kind == DeviceModelKind::kRegression ? regression_error : physical_error;
  CAIRN_DCHECK(error.has_value());
  return *error;
}

Prediction DeviceModel::predict(std::span<const double> point) const {
  Prediction prediction = kind == DeviceModelKind::kRegression
                              ? regression->regression.predict(point)
                              : physical->predict(workload_of(device_class, point));
  prediction.value = std::max(0.0, prediction.value);
  prediction.lower = std::max(0.0, prediction.lower);
  prediction.upper = std::max(0.0, prediction.upper);
  CAIRN_DCHECK(!(prediction.lower > prediction.upper));
  prediction.is_extrapolation = !is_inside_range(point);
  return prediction;
}

std::string DeviceModel::text() const {
  const bool is_regression = kind == DeviceModelKind::kRegression;
  std::string text = is_regression ? "in use: regression\n" : "in use: physical\n";
  if (regression_error) text += "regression: " + regression_error->text() + '\n';
  if (physical_error) text += "physical: " + physical_error->text() + '\n';
  if (physical) text += physical->device.text() + '\n';
  if (regression) text += regression->regression.table();
  return text;
}

Result<DeviceModel> choose_device_model(const DeviceEquation& equation,
                                        const Observations& observations, const FoldPlan& plan) {
  return DeviceModelChoice(equation, observations, plan).run();
}

}  // namespace cairn
