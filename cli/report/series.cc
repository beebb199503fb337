// SPDX-License-Identifier: Apache-2.0
#include "cli/report/series.h"

#include <string_view>

#include "base/check.h"
#include "cli/node/json_fields.h"
#include "cli/report/chart.h"

namespace cairn::cli {

using Json = nlohmann::json;

Series::Series(const Json& run) : series_(member(member(run, "timeline"), "series")) {
  for (const Json& each : member(series_, "seconds"))
    seconds_.push_back(each.is_number() ? each.get<double>() : 0);
}

std::vector<double> Series::of(const std::string& name) const {
  std::vector<double> values;
  for (const Json& each : member(series_, name.c_str()))
    values.push_back(each.is_number() ? each.get<double>() : 0);
  values.resize(seconds_.size(), values.empty() ? 0 : values.back());
  CAIRN_CHECK(values.size() == seconds_.size());
  return values;
}

std::vector<double> Series::rate(const std::string& name) const {
  return rates(of(name), seconds_);
}

double Series::last(const std::string& name) const {
  const std::vector<double> values = of(name);
  return values.empty() ? 0 : values.back();
}

std::vector<std::string> tier_names(const Json& run) {
  std::vector<std::string> names;
  for (const Json& tier : member(member(run, "timeline"), "tiers"))
    names.push_back(text_field(tier, "name"));
  return names;
}

// Names behind "fetched_bytes." that have a series.
std::vector<std::string> predictors_of(const Json& run) {
  constexpr std::string_view kPrefix = "fetched_bytes.";
  std::vector<std::string> names;
  for (const auto& [name, values] : member(member(run, "timeline"), "series").items()) {
    if (name.rfind(kPrefix, 0) == 0) names.push_back(name.substr(kPrefix.size()));
  }
  return names;
}

}  // namespace cairn::cli
