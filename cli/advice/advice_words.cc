// SPDX-License-Identifier: Apache-2.0
#include "cli/advice/advice_words.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/check.h"
#include "base/handling.h"
#include "cli/advice/machine_costs.h"
#include "cli/advice/what_if.h"
#include "cli/configuration/configuration.h"
#include "cli/configuration/machine.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "service/profiler/tier_figures.h"

namespace cairn::cli {
namespace {

using profiler::DeviceClass;

// "10%-of-io-time": the share.
double target_of(const std::string& text) {
  constexpr std::string_view kTail = "%-of-io-time";
  char* end = nullptr;
  const double percent = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || kTail != end || !(percent > 0 && percent < 100))
    throw Failure(fmt::format("--target: \"{}\" is none", printable(text)),
                  "write how much of the I/O time may be left, such as 10%-of-io-time");
  return percent / 100;
}

void check_store(const std::string& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0)
    throw Failure(fmt::format("--store {}: {}", printable(directory), std::strerror(errno)),
                  "name a directory on the slow store");
  if (!S_ISDIR(status.st_mode))
    throw Failure(fmt::format("--store {}: is not a directory", printable(directory)),
                  "name a directory on the slow store");
}

// A number that a file of the kernel has; none where it has none.
std::optional<double> kernel_number(const std::string& path) {
  std::ifstream file(path);
  double number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

// What the kernel lets programs write to the store before they wait, if it is less than usual: a
// limit of the whole system, or that of the store's device (Linux 6.2).
std::optional<double> dirty_limit_of(const std::string& directory) {
  std::optional<double> limit = kernel_number("/proc/sys/vm/dirty_bytes");
  if (limit && *limit == 0) limit.reset();
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) return limit;
  const std::string device =
      fmt::format("/sys/class/bdi/{}:{}/", major(status.st_dev), minor(status.st_dev));
  if (kernel_number(device + "strict_limit").value_or(0) == 0) return limit;
  const std::optional<double> own = kernel_number(device + "max_bytes");
  return own && *own > 0 ? std::min(*own, limit.value_or(*own)) : limit;
}

advice::Plan plan_of(const NodeConfig& config, const std::vector<advice::FileTierPlan>& tiers) {
  advice::Plan plan;
  plan.ram_bytes = static_cast<double>(config.ram_capacity_bytes);
  plan.tiers = tiers;
  plan.expert = config.replacement_expert;
  plan.policy = config.placement_policy;
  plan.trigger = name_of(config.trigger);
  plan.mode = name_of(config.mode);
  plan.durability = config.durability == Durability::kNode ? advice::DurableLevel::kNode
                                                           : advice::DurableLevel::kStore;
  plan.prefetch_percent = config.prefetch_percent;
  plan.flush_streams = config.flush_streams;
  return plan;
}

std::vector<advice::FileTierPlan> tiers_of(const NodeConfig& config) {
  std::vector<advice::FileTierPlan> tiers;
  for (const FileTierConfig& tier : config.tiers) {
    const auto figures = profiler::figures_for(tier.directory, profiler::TierKind::kDirectory);
    tiers.push_back({.name = tier.name,
                     .directory = tier.directory,
                     .bytes = static_cast<double>(tier.capacity_bytes),
                     .is_durable = tier.is_durable,
                     .speed = speed_of(figures)});
  }
  return tiers;
}

void set_machine(const AdviceWords& words, const WhatIf& what_if, AdviceQuestion* question) {
  advice::Machine& machine = question->machine;
  const auto store = profiler::figures_for(words.store, profiler::TierKind::kDirectory);
  if (!what_if.store) question->store_directory = words.store;
  machine.store = what_if.store ? class_speed(*what_if.store) : speed_of(store);
  machine.memory = speed_of(profiler::figures_for("", profiler::TierKind::kMemory));
  const MachineCosts costs = measure_machine_costs();
  question->timing_spread = costs.spread;
  machine.call_seconds = costs.call_seconds;
  machine.fresh_tier_bandwidth = costs.fresh_mapped_bandwidth;
  machine.fresh_cache_bandwidth = costs.fresh_cached_bandwidth;
  machine.processors = static_cast<double>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const MemoryState memory = read_memory_state();
  const DeviceClass device_class = what_if.store.value_or(store.device_class);
  const bool is_far = device_class == DeviceClass::kNetwork;
  question->assumes_no_page_cache = is_far && !what_if.page_cache_bytes;
  machine.page_cache_bytes =
      what_if.page_cache_bytes.value_or(is_far ? 0 : static_cast<double>(memory.available_bytes));
  machine.dirty_bytes_max =
      what_if.dirty_bytes_max ? what_if.dirty_bytes_max : dirty_limit_of(words.store);
  // The programs need the rest.
  constexpr double kShareMax = 0.5;
  machine.memory_bytes_max =
      kShareMax * static_cast<double>(std::min(memory.available_bytes, ram_capacity_max(memory)));
}

}  // namespace

AdviceQuestion question_of(const AdviceWords& words) {
  check_store(words.store);
  WhatIf what_if;
  for (const std::string& text : words.what_if) take_what_if(text, &what_if);
  AdviceQuestion question;
  set_machine(words, what_if, &question);
  const Configuration configuration = resolve_configuration(words.settings);
  for (const std::string& warning : configuration.warnings) say("warning: " + warning);
  const std::vector<advice::FileTierPlan> tiers = tiers_of(configuration.node);
  advice::Plan now = plan_of(configuration.node, tiers);
  const bool has_own = !words.settings.config_file.empty() || words.settings.flags.size() > 0;
  now.name = has_own ? "as configured" : "default";
  if (!words.settings.flag("ram.capacity").empty())
    question.machine.memory_bytes_max = static_cast<double>(configuration.node.ram_capacity_bytes);
  question.machine.memory_bytes_max = std::max(question.machine.memory_bytes_max, 1.0 * (1 << 20));
  question.wishes.tiers = tiers;
  question.wishes.plans.push_back(now);
  question.wishes.spare_tier = {.name = "nvme",
                                .directory = {},
                                .bytes = 0,
                                .is_durable = false,
                                .speed = class_speed(DeviceClass::kNvme)};
  if (what_if.has_plan()) {
    what_if.change(&now);
    now.name = "what if";
    question.wishes.what_if = now;
  }
  if (words.target) question.wishes.target_share = target_of(*words.target);
  CAIRN_CHECK(question.machine.store.is_valid());
  return question;
}

}  // namespace cairn::cli
