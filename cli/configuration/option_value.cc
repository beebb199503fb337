// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/option_value.h"

#include <fmt/format.h>

#include <vector>

#include "base/size_text.h"

namespace cairn::cli {
namespace {

std::string tiers_text(const NodeConfig& node) {
  std::vector<std::string> parts;
  for (const FileTierConfig& tier : node.tiers) {
    parts.push_back(
        fmt::format("{}={}:{}", tier.name, tier.directory, format_size_exact(tier.capacity_bytes)));
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, " "));
}

std::string or_none(const std::string& path) { return path.empty() ? "none" : path; }

const char* huge_pages_text(HugePages pages) {
  if (pages == HugePages::kNever) return "never";
  return pages == HugePages::kHugetlb ? "hugetlb" : "auto";
}

std::string joined_or(const std::vector<std::string>& list, const char* instead) {
  return list.empty() ? instead : fmt::format("{}", fmt::join(list, ":"));
}

}  // namespace

std::string option_value_text(const Configuration& configuration, OptionId id) {
  const NodeConfig& node = configuration.node;
  switch (id) {
    case OptionId::kNodeName:
      return node.name;
    case OptionId::kRamCapacity:
      return format_size_exact(node.ram_capacity_bytes);
    case OptionId::kRamHugePages:
      return huge_pages_text(node.huge_pages);
    case OptionId::kTiers:
      return tiers_text(node);
    case OptionId::kFlushDelay:
      return fmt::format("{}", node.flush_delay_ms);
    case OptionId::kFlushStreams:
      return fmt::format("{}", node.flush_streams);
    case OptionId::kFlushDirtyHigh:
      return fmt::format("{}", node.flush_dirty_high_percent);
    case OptionId::kFlushRetry:
      return fmt::format("{}", node.flush_retry_ms);
    case OptionId::kProfileIdle:
      return fmt::format("{}", node.profile_idle_ms);
    case OptionId::kPrefetchBudget:
      return fmt::format("{}", node.prefetch_percent);
    case OptionId::kEventsKeep:
      return fmt::format("{}", node.events_keep_percent);
    case OptionId::kEvictLow:
      return fmt::format("{}", node.evict_low_percent);
    case OptionId::kEvictHigh:
      return fmt::format("{}", node.evict_high_percent);
    case OptionId::kBufferDirectories:
      return joined_or(node.buffer_directories, "working directory of each run");
    case OptionId::kBufferExclude:
      return joined_or(node.buffer_exclude, "nothing");
    case OptionId::kClientsMax:
      return fmt::format("{}", node.clients_max);
    case OptionId::kObjectsMax:
      return node.objects_max == 0 ? "auto" : fmt::format("{}", node.objects_max);
    case OptionId::kReport:
      return configuration.report ? "on" : "off";
    case OptionId::kBalanceReads:
      return node.balances_reads ? "on" : "off";
    case OptionId::kPrefetchByHeat:
      return node.prefetches_by_heat ? "on" : "off";
    case OptionId::kPrefetchOrders:
      return or_none(node.orders_file);
    case OptionId::kPrefetchRemember:
      return or_none(node.remember_directory);
    case OptionId::kPrefetchPlugin:
      return or_none(node.predictor_file);
    case OptionId::kSchema:
      return or_none(node.schema_file);
    case OptionId::kBufferMode:
      return name_of(node.mode);
    case OptionId::kBufferScratch:
      return fmt::format("{}", fmt::join(node.scratch_directories, ", "));
    case OptionId::kBufferSwap:
      return format_size_exact(node.swap_capacity_bytes);
    case OptionId::kFlushTrigger:
      return name_of(node.trigger);
    case OptionId::kFlushAmount:
      return format_size_exact(node.flush_amount_bytes);
    case OptionId::kPlacementPolicy:
      return node.placement_policy;
    case OptionId::kReplacementExpert:
      return node.replacement_expert;
    case OptionId::kReplacementAdmission:
      return node.admits_by_value ? "value" : "always";
  }
  return "";
}

}  // namespace cairn::cli
