// SPDX-License-Identifier: Apache-2.0
#include "cli/advice/trained_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/check.h"
#include "base/size_text.h"
#include "cli/terminal/output.h"
#include "service/profiler/profile_store.h"
#include "service/training/trained_device.h"

namespace cairn::cli {
namespace {

// A model that is wrong by more than this in half of its experiments is not worth asking.
constexpr double kMedianErrorMax = 0.5;
// Kinds of loads that a note names; the first ones are enough to see what is missing.
constexpr std::size_t kOutsideMax = 3;
// Where the parameters of equation 8 stand in a point of it.
enum PointPlace : std::size_t { kInFlight, kRequestBytes, kRequests, kAddressRange, kPointPlaces };
using Point = std::array<double, kPointPlaces>;

std::string bytes_text(double bytes) {
  return format_size(static_cast<std::uint64_t>(std::llround(std::max(0.0, bytes))));
}

// Whether the value is in the range, but for an error of rounding, which is taken off.
bool fits_range(const ParameterRange& range, double* value) {
  constexpr double kRounding = 1e-6;
  if (*value < range.lowest * (1 - kRounding) || *value > range.highest * (1 + kRounding))
    return false;
  *value = std::clamp(*value, range.lowest, range.highest);
  return true;
}

void note_outside(TrainedUse* use, std::string text) {
  if (use->outside.size() < kOutsideMax) use->outside.insert(std::move(text));
}

// Whether the model was trained with such a load. Where it was not, a note says so.
bool fit_point(TrainedUse* use, Point* point) {
  const std::vector<ParameterRange>& ranges = use->model.training_ranges;
  CAIRN_CHECK(ranges.size() == kPointPlaces);
  if (!fits_range(ranges[kRequestBytes], &(*point)[kRequestBytes])) {
    note_outside(use, fmt::format("requests of {} ({} to {} were trained)",
                                  bytes_text((*point)[kRequestBytes]),
                                  bytes_text(ranges[kRequestBytes].lowest),
                                  bytes_text(ranges[kRequestBytes].highest)));
    return false;
  }
  if (!fits_range(ranges[kInFlight], &(*point)[kInFlight])) {
    note_outside(
        use, fmt::format("{:g} requests in flight ({:g} to {:g} were trained)", (*point)[kInFlight],
                         ranges[kInFlight].lowest, ranges[kInFlight].highest));
    return false;
  }
  const ParameterRange& range = ranges[kAddressRange];
  // The physical model's times do not depend on it.
  if (use->model.kind == DeviceModelKind::kPhysical)
    (*point)[kAddressRange] = std::clamp((*point)[kAddressRange], range.lowest, range.highest);
  if (!fits_range(range, &(*point)[kAddressRange])) {
    note_outside(
        use, fmt::format("data of {} ({} to {} were trained)", bytes_text((*point)[kAddressRange]),
                         bytes_text(range.lowest), bytes_text(range.highest)));
    return false;
  }
  return true;
}

std::optional<advice::TrainedTime> ask(TrainedUse* use, const advice::DeviceLoad& load) {
  CAIRN_CHECK(load.requests > 0);
  if (!(load.bytes > 0)) return std::nullopt;
  Point point{load.concurrency, load.bytes / load.requests, load.requests,
              use->address_range_bytes};
  if (!fit_point(use, &point)) return std::nullopt;
  const ParameterRange& requests = use->model.training_ranges[kRequests];
  point[kRequests] = std::clamp(load.requests, requests.lowest, requests.highest);
  const Prediction prediction = use->model.predict(point);
  CAIRN_CHECK(!prediction.is_extrapolation);
  // A regression may say that a short load takes no time.
  if (!(prediction.value > 0)) return std::nullopt;
  use->answered = true;
  return advice::TrainedTime{prediction.value * load.requests / point[kRequests],
                             use->model.error().factor_of_nine_tenths};
}

// Reads journals once each, however many plans have the same tier.
class TrainedPlaces {
 public:
  explicit TrainedPlaces(double address_range_bytes) : address_range_(address_range_bytes) {}

  void give_model(const std::string& place, const std::string& directory,
                  advice::DeviceSpeed* speed) {
    if (directory.empty() || speed->is_memory) return;
    const auto [found, is_new] = known_.try_emplace(directory);
    if (is_new) found->second = uses_of(place, directory, speed->source);
    const TrainedUses& uses = found->second;
    if (uses.empty()) return;
    speed->trained = [uses](const advice::DeviceLoad& load) -> std::optional<advice::TrainedTime> {
      const bool is_read = load.direction == advice::Direction::kRead;
      const auto use = std::ranges::find(uses, is_read, &TrainedUse::is_read);
      return use == uses.end() ? std::nullopt : ask(use->get(), load);
    };
  }

  TrainedUses all() const {
    TrainedUses all;
    for (const auto& [directory, uses] : known_) all.insert(all.end(), uses.begin(), uses.end());
    return all;
  }

 private:
  TrainedUses uses_of(const std::string& place, const std::string& directory,
                      const std::string& source) const {
    const auto device = training::trained_device(directory, profiler::ProfileStore().file());
    if (!device) say("warning: " + printable(device.status().message()));
    TrainedUses uses;
    if (!device || !*device) return uses;
    for (const training::AccessModel& access : (*device)->models) {
      if (!access.model || access.model->error().median_relative > kMedianErrorMax) continue;
      uses.push_back(
          std::make_shared<TrainedUse>(TrainedUse{.place = place,
                                                  .directory = directory,
                                                  .file = (*device)->file,
                                                  .source = source,
                                                  .is_read = access.access == AccessKind::kRead,
                                                  .model = *access.model,
                                                  .address_range_bytes = address_range_,
                                                  .answered = false,
                                                  .outside = {}}));
    }
    return uses;
  }

  const double address_range_;
  std::map<std::string, TrainedUses> known_;
};

}  // namespace

TrainedUses use_trained_devices(const std::string& store_directory, const advice::Workload& work,
                                advice::Machine* machine, advice::Wishes* wishes) {
  TrainedPlaces places(work.reuse.blocks * static_cast<double>(advice::kBlockBytes));
  places.give_model("the store", store_directory, &machine->store);
  const auto give_all = [&](std::vector<advice::FileTierPlan>* tiers) {
    for (advice::FileTierPlan& tier : *tiers)
      places.give_model(tier.directory, tier.directory, &tier.speed);
  };
  give_all(&wishes->tiers);
  for (advice::Plan& plan : wishes->plans) give_all(&plan.tiers);
  if (wishes->what_if) give_all(&wishes->what_if->tiers);
  return places.all();
}

std::vector<std::string> trained_sentences(const TrainedUses& uses) {
  std::vector<std::string> lines;
  for (const auto& use : uses) {
    const char* const verb = use->is_read ? "Reads of" : "Writes to";
    const std::string outside = fmt::format("{}, so these are by the figures ({})",
                                            fmt::join(use->outside, "; "), use->source);
    if (use->answered) {
      std::string line = fmt::format(
          "{} {} are by its trained model, within a factor of {:.2f} in nine of ten experiments.",
          verb, printable(use->place), use->model.error().factor_of_nine_tenths);
      if (!use->outside.empty()) line += fmt::format(" It does not reach {}.", outside);
      lines.push_back(std::move(line));
    } else if (!use->outside.empty()) {
      lines.push_back(fmt::format("{} {}: its training does not reach {}.", verb,
                                  printable(use->place), outside));
    }
  }
  return lines;
}

}  // namespace cairn::cli
