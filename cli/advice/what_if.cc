// SPDX-License-Identifier: Apache-2.0
#include "cli/advice/what_if.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/handling.h"
#include "base/nearest_name.h"
#include "base/size_text.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

using profiler::DeviceClass;

constexpr std::array<std::string_view, 15> kKeys = {
    "ram",        "nvme",     "ssd",     "hdd",   "policy",     "expert", "trigger", "mode",
    "durability", "prefetch", "streams", "store", "page-cache", "dirty",  "nodes"};
// No node has more, whatever its place.
constexpr double kBytesMax = 1ULL << 50;

[[noreturn]] void refuse(std::string_view key, std::string_view value, const std::string& remedy) {
  throw Failure(fmt::format("--what-if {}={}: that cannot be", printable(key), printable(value)),
                remedy);
}

double size_value(std::string_view key, std::string_view value, bool may_be_none) {
  const auto bytes = parse_size(value);
  if (!bytes || static_cast<double>(*bytes) > kBytesMax || (*bytes == 0 && !may_be_none))
    refuse(key, value,
           may_be_none ? "write a size of at most 1024T, such as 4G"
                       : "write a size from 1 to 1024T, such as 200G; without a tier of that "
                         "kind, leave the key out");
  return static_cast<double>(*bytes);
}

double count_value(std::string_view key, std::string_view value, double least, double most) {
  const auto count = parse_count(value);
  if (!count || static_cast<double>(*count) < least || static_cast<double>(*count) > most)
    refuse(key, value, fmt::format("write a number from {} to {}", least, most));
  return static_cast<double>(*count);
}

template <typename Names>
std::string one_of(std::string_view key, std::string_view value, const Names& names) {
  if (std::ranges::find(names, value) == std::ranges::end(names))
    refuse(key, value, fmt::format("write one of {}", fmt::join(names, ", ")));
  return std::string(value);
}

template <typename Word, std::size_t Count>
std::array<std::string_view, Count> all_names() {
  std::array<std::string_view, Count> names;
  for (std::size_t index = 0; index < Count; ++index) names[index] = name_of(Word(index));
  return names;
}

constexpr std::array<std::string_view, 3> kComparedNames = {"ws-plus", "lru", "lfu"};

void take_setting(std::string_view key, std::string_view value, WhatIf* what_if) {
  if (key == "ram") what_if->ram_bytes = size_value(key, value, true);
  if (key == "policy") what_if->policy = one_of(key, value, kPlacementPolicyNames);
  if (key == "expert") what_if->expert = one_of(key, value, kComparedNames);
  if (key == "trigger")
    what_if->trigger = one_of(key, value, all_names<FlushTrigger, kFlushTriggers>());
  if (key == "mode")
    what_if->mode = one_of(key, value, all_names<BufferingMode, kBufferingModes>());
  if (key == "prefetch") what_if->prefetch_percent = count_value(key, value, 0, 90);
  if (key == "streams") what_if->flush_streams = count_value(key, value, 1, 64);
  if (key == "durability") {
    const std::string level = one_of(key, value, all_names<Durability, kDurabilities>());
    what_if->durability =
        level == "node" ? advice::DurableLevel::kNode : advice::DurableLevel::kStore;
  }
}

// A node has its tiers for its own programs: nothing of what is known of one says what several do.
void take_nodes(std::string_view value) {
  constexpr double kNodesMax = 1e6;
  if (count_value("nodes", value, 1, kNodesMax) == 1) return;
  throw Failure(fmt::format("--what-if nodes={}: there is no advice on several nodes", value),
                "each node has tiers of its own and knows nothing of the others yet: leave the key "
                "out, and ask with what the programs of one node do");
}

void take_pair(std::string_view key, std::string_view value, WhatIf* what_if) {
  if (std::ranges::find(kKeys, key) == kKeys.end()) {
    const std::vector<std::string_view> known(kKeys.begin(), kKeys.end());
    const std::string_view nearest = nearest_name(key, known);
    throw Failure(fmt::format("--what-if: there is no key \"{}\"", printable(key)),
                  nearest.empty() ? fmt::format("the keys are {}", fmt::join(kKeys, ", "))
                                  : fmt::format("did you mean \"{}\"?", nearest));
  }
  if (!what_if->keys.emplace(key).second)
    throw Failure(fmt::format("--what-if {}={}: there is a value for {} already", printable(key),
                              printable(value), printable(key)),
                  "write each key once");
  if (key == "nodes") {
    take_nodes(value);
  } else if (key == "page-cache") {
    what_if->page_cache_bytes = size_value(key, value, true);
  } else if (key == "dirty") {
    what_if->dirty_bytes_max = size_value(key, value, true);
  } else if (key == "store") {
    const auto device = profiler::class_named(value);
    if (!device) refuse(key, value, "write one of ram, nvme, ssd, hdd, network");
    what_if->store = device;
  } else if (key == "nvme" || key == "ssd" || key == "hdd") {
    what_if->tiers.push_back({.name = std::string(key),
                              .directory = {},
                              .bytes = size_value(key, value, false),
                              .is_durable = false,
                              .speed = class_speed(*profiler::class_named(key))});
  } else {
    take_setting(key, value, what_if);
  }
}

double queue_depth_of(DeviceClass device_class) {
  switch (device_class) {
    case DeviceClass::kMemory:
      return 64;
    case DeviceClass::kNvme:
      return 64;
    case DeviceClass::kSsd:
      return 32;
    case DeviceClass::kNetwork:
      return 16;
    case DeviceClass::kHdd:
    case DeviceClass::kUnknown:
      break;
  }
  return 1;
}

}  // namespace

advice::DeviceSpeed speed_of(const profiler::TierFigures& figures) {
  // Not measured yet over many devices: what repeated measurements of one differ by, and what
  // devices of one class do.
  constexpr double kMeasuredError = 1.3;
  constexpr double kClassError = 2;
  return {.read_bandwidth = figures.read_bandwidth,
          .write_bandwidth = figures.write_bandwidth,
          .read_latency = figures.read_latency,
          .write_latency = figures.write_latency,
          .read_idle_latency = figures.read_idle_latency,
          .write_idle_latency = figures.write_idle_latency,
          .sync_latency = figures.sync_latency,
          .queue_depth = queue_depth_of(figures.device_class),
          .error = figures.measured ? kMeasuredError : kClassError,
          .is_memory = figures.device_class == DeviceClass::kMemory,
          .source = figures.source};
}

advice::DeviceSpeed class_speed(DeviceClass device_class) {
  return speed_of(profiler::tier_figures(device_class));
}

bool WhatIf::has_plan() const {
  return ram_bytes || !tiers.empty() || policy || expert || trigger || mode || durability ||
         prefetch_percent || flush_streams;
}

void WhatIf::change(advice::Plan* plan) const {
  plan->ram_bytes = ram_bytes.value_or(plan->ram_bytes);
  if (!tiers.empty()) plan->tiers = tiers;
  plan->policy = policy.value_or(plan->policy);
  plan->expert = expert.value_or(plan->expert);
  plan->trigger = trigger.value_or(plan->trigger);
  plan->mode = mode.value_or(plan->mode);
  plan->durability = durability.value_or(plan->durability);
  plan->prefetch_percent = prefetch_percent.value_or(plan->prefetch_percent);
  plan->flush_streams = flush_streams.value_or(plan->flush_streams);
}

void take_what_if(std::string_view text, WhatIf* what_if) {
  bool is_last = false;
  while (!is_last) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view pair = text.substr(0, comma);
    is_last = comma == text.size();
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw Failure(fmt::format("--what-if \"{}\": no KEY=VALUE", printable(pair)),
                    fmt::format("the keys are {}", fmt::join(kKeys, ", ")));
    take_pair(pair.substr(0, equals), pair.substr(equals + 1), what_if);
  }
}

}  // namespace cairn::cli
