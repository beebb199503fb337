// SPDX-License-Identifier: Apache-2.0
#include "service/control/explain.h"

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "service/capacity/placement_engine.h"
#include "service/treatment/rule_book.h"
#include "service/treatment/rule_json.h"

namespace cairn::node {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kRangesMax = 1000;
constexpr std::uint64_t kBlocksMax = 4 << 20;  // 256 GiB of file are looked at

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string tier;
  bool dirty = false;
  std::uint32_t since_ms = 0;
  std::string reason;

  bool continues(const Range& other) const {
    return end == other.begin && tier == other.tier && dirty == other.dirty &&
           reason == other.reason;
  }
};

Range range_of(const NodeContext& context, BucketIndex bucket, BlockNumber number,
               std::uint64_t size) {
  const BlockDescriptor& block = context.memory->block(bucket);
  Range range;
  range.begin = offset_of(number);
  range.end = std::min(size, range.begin + kBlockBytes);
  range.tier = tier_name(*context.config, raw(context.memory->tier_of(bucket)));
  range.dirty = block.dirty_pages() != 0;
  range.since_ms = range.dirty ? block.dirty_since_ms() : block.placed_ms();
  range.reason = name_of(block.reason());
  return range;
}

Json to_json(const Range& range, std::uint32_t now_ms) {
  return {{"begin", range.begin},
          {"end", range.end},
          {"tier", range.tier},
          {"state", range.dirty ? "dirty" : "clean"},
          {"since_seconds", (now_ms - range.since_ms) / 1000.0},
          {"reason", range.reason}};
}

Json to_json(const NodeContext& context, const ObjectHandling& handling) {
  return {{"mode", cairn::name_of(handling.mode)},
          {"trigger", cairn::name_of(handling.trigger)},
          {"policy", context.placement->name_of(handling.policy)},
          {"tier", handling.home ? tier_name(*context.config, raw(*handling.home)) : ""},
          {"pinned", handling.pinned},
          {"priority", handling.priority}};
}

const char* name_of_property(RuleRecord::Property property) {
  switch (property) {
    case RuleRecord::kMode:
      return "mode";
    case RuleRecord::kTrigger:
      return "trigger";
    case RuleRecord::kPolicy:
      return "policy";
    case RuleRecord::kHome:
      return "tier";
    case RuleRecord::kPinned:
      return "pinned";
    case RuleRecord::kPriority:
      return "priority";
    case RuleRecord::kPrefetch:
      return "prefetch";
    case RuleRecord::kAccount:
      return "reserve";
  }
  return "";
}

// Which rule decides what about the file, for whoever opens it next.
Json rules_json(const NodeContext& context, const ExplainRequest& request) {
  Json list = Json::array();
  if (request.path.empty()) return list;
  for (const RuleBook::Decision& decision :
       context.rules->decisions(request.path, request.size, buffered_directories(context))) {
    Json rule = rule_to_json(decision.rule);
    const char* property = name_of_property(decision.property);
    Json entry = {{"property", property},
                  {"value", rule.value(property, Json())},
                  {"rule", decision.rule.name},
                  {"pattern", decision.rule.pattern},
                  {"source", decision.rule.source}};
    if (decision.rule.speaks_of_part()) {
      entry["begin"] = decision.rule.offset_begin;
      if (decision.rule.offset_end != FileRule::kUnlimited) entry["end"] = decision.rule.offset_end;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

ObjectIndex find_file(const NodeMemory& memory, std::uint64_t device, std::uint64_t inode) {
  const std::uint32_t used =
      std::min(memory.header().object_cursor.load(), memory.objects().capacity());
  for (std::uint32_t index = 1; index < used; ++index) {
    const Object& object = memory.objects().at(static_cast<ObjectIndex>(index));
    if (object.has(kObjectLive) && object.inode == inode && object.device == device) {
      return static_cast<ObjectIndex>(index);
    }
  }
  return ObjectIndex::kNone;
}

Json explain_file(const NodeContext& context, const ExplainRequest& request) {
  const NodeMemory& memory = *context.memory;
  const ObjectIndex index = find_file(memory, request.device, request.inode);
  if (index == ObjectIndex::kNone) {
    return {{"kind", "done"},
            {"known", false},
            {"size", request.size},
            {"rules", rules_json(context, request)}};
  }
  const Object& object = memory.objects().at(index);
  // Of what goes past the tiers nobody here knows the size.
  const bool is_past =
      object.through.load() != 0 || object.handling().mode == BufferingMode::kBypass;
  const std::uint64_t size = is_past ? request.size : object.size.load();
  const std::uint64_t blocks = std::min((size + kBlockBytes - 1) / kBlockBytes, kBlocksMax);
  const std::uint32_t now_ms = monotonic_coarse_ms();
  std::vector<Range> ranges;
  std::uint64_t dirty_bytes = 0;
  bool truncated = blocks * kBlockBytes < size;
  std::uint32_t left = object.blocks.load();
  for (std::uint64_t number = 0; number < blocks && left != 0; ++number) {
    const auto block = static_cast<BlockNumber>(number);
    const BucketIndex bucket = memory.directory().find(index, block);
    if (bucket == BucketIndex::kNone) continue;
    --left;
    const auto pages =
        static_cast<unsigned>(__builtin_popcount(memory.block(bucket).dirty_pages()));
    dirty_bytes += pages * kPageBytes;
    Range range = range_of(context, bucket, block, size);
    if (!ranges.empty() && ranges.back().continues(range)) {
      ranges.back().end = range.end;
    } else if (ranges.size() < kRangesMax) {
      ranges.push_back(std::move(range));
    } else {
      truncated = true;
    }
  }
  Json list = Json::array();
  for (const Range& range : ranges) list.push_back(to_json(range, now_ms));
  return {{"kind", "done"},
          {"known", true},
          {"size", size},
          {"dirty_bytes", dirty_bytes},
          {"mode", object.through.load() != 0 ? "through" : "buffered"},
          {"handling", to_json(context, object.handling())},
          {"rules", rules_json(context, request)},
          {"ranges", list},
          {"ranges_truncated", truncated}};
}

}  // namespace cairn::node
