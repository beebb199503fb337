// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/profile_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/size_text.h"
#include "cli/terminal/output.h"
#include "service/profiler/profile_json.h"

namespace cairn::cli {
namespace {

using profiler::TierFigures;

TierFigures figures_of(const ProfiledPlace& place) {
  return place.profile ? profiler::tier_figures(*place.profile)
                       : profiler::tier_figures(place.identity.device_class);
}

std::string rate_text(double bytes_per_second) {
  return format_size(static_cast<uint64_t>(bytes_per_second)) + "/s";
}

// The larger one of the two bandwidths'.
double bandwidth_spread(const profiler::DeviceFigures& figures) {
  return std::max(figures.read_bandwidth.relative(), figures.write_bandwidth.relative());
}

}  // namespace

std::string latency_text(double seconds) {
  // Values that three digits would round up to the next unit are written in that one.
  if (seconds < 999.5e-9) return fmt::format("{:.3g} ns", seconds * 1e9);
  if (seconds < 999.5e-6) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 999.5e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string profile_table(const std::vector<ProfiledPlace>& places) {
  std::vector<std::vector<std::string>> rows = {{"place", "class", "device", "size", "read",
                                                 "write", "read lat.", "write lat.", "spread",
                                                 "from"}};
  for (const ProfiledPlace& place : places) {
    const profiler::DeviceIdentity& device = place.identity;
    std::vector<std::string> row = {
        printable(place.place), std::string(profiler::class_name(device.device_class)),
        printable(device.name), device.size_bytes > 0 ? format_size(device.size_bytes) : "-"};
    if (place.profile || place.has_default) {
      const TierFigures figures = figures_of(place);
      row.insert(row.end(),
                 {rate_text(figures.read_bandwidth), rate_text(figures.write_bandwidth),
                  latency_text(figures.read_latency), latency_text(figures.write_latency)});
    } else {
      row.insert(row.end(), 4, "-");
    }
    row.push_back(place.profile
                      ? fmt::format("{:.0f} %", 100 * bandwidth_spread(place.profile->figures))
                      : "-");
    row.push_back(printable(place.from));
    rows.push_back(std::move(row));
  }
  return format_table(rows, "lllrrrrrrl");
}

nlohmann::json profile_document(const std::string& store_file,
                                const std::vector<ProfiledPlace>& places,
                                const std::vector<ProfileFailure>& failures) {
  nlohmann::json document = {{"file", store_file},
                             {"places", nlohmann::json::array()},
                             {"failures", nlohmann::json::array()}};
  for (const ProfiledPlace& place : places) {
    nlohmann::json entry = {{"place", place.place},
                            {"device", profiler::identity_json(place.identity)},
                            {"from", place.from},
                            {"measured", place.profile.has_value()}};
    if (place.profile || place.has_default) {
      const TierFigures figures = figures_of(place);
      entry["read_bandwidth"] = figures.read_bandwidth;
      entry["write_bandwidth"] = figures.write_bandwidth;
      entry["read_latency"] = figures.read_latency;
      entry["write_latency"] = figures.write_latency;
    }
    if (place.profile) {
      entry["spread"] = bandwidth_spread(place.profile->figures);
      entry["measured_at"] = place.profile->measured_at;
      entry["figures"] = profiler::figures_json(place.profile->figures);
    }
    document["places"].push_back(std::move(entry));
  }
  for (const ProfileFailure& failure : failures) {
    document["failures"].push_back(
        {{"place", failure.place}, {"message", failure.message}, {"remedy", failure.remedy}});
  }
  return document;
}

}  // namespace cairn::cli
