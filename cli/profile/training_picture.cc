// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/training_picture.h"

#include <nlohmann/json.hpp>

namespace cairn::cli {

std::string picture_lines(const std::string& place,
                          const std::vector<training::AccessModel>& models,
                          const std::vector<training::FinishedExperiment>& finished) {
  using nlohmann::json;
  std::string lines;
  for (const training::AccessModel& access : models) {
    if (!access.model) continue;
    json measured = json::array();
    json predicted = json::array();
    for (const training::FinishedExperiment& one : finished) {
      if (one.experiment.access != access.access) continue;
      measured.push_back(one.seconds);
      predicted.push_back(access.model->predict(training::point_of(one.experiment)).value);
    }
    const bool is_physical = access.model->kind == DeviceModelKind::kPhysical;
    const json line = {{"place", place},
                       {"access", access.access == AccessKind::kRead ? "reads" : "writes"},
                       {"model", is_physical ? "physical" : "regression"},
                       {"r_squared", access.model->error().r_squared},
                       {"median_relative", access.model->error().median_relative},
                       {"measured", measured},
                       {"predicted", predicted}};
    lines += line.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
  }
  return lines;
}

}  // namespace cairn::cli
