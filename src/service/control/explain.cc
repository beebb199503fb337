// SPDX-License-Identifier: Apache-2.0
#include "service/control/explain.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "service/treatment/rule_json.h"

namespace cairn::node {
namespace {

constexpr std::size_t kRangesMax = 1000;
constexpr std::uint64_t kBlocksMax = 4 << 20;  // 256 GiB of file are looked at

const char* name_of_property(RuleRecord::Property property) {
  switch (property) {
    case RuleRecord::kMode:
      return "mode";
    case RuleRecord::kTrigger:
      return "trigger";
    case RuleRecord::kDurability:
      return "durability";
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

}  // namespace

struct Explanation::Range {
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
  Json to_json(std::uint32_t now_ms) const {
    return {{"begin", begin},
            {"end", end},
            {"tier", tier},
            {"state", dirty ? "dirty" : "clean"},
            {"since_seconds", elapsed_ms(now_ms, since_ms) / 1000.0},
            {"reason", reason}};
  }
};

struct Explanation::Ranges {
  std::vector<Range> list;
  std::uint64_t dirty_bytes = 0;
  bool is_truncated = false;

  void add(Range range) {
    CAIRN_CHECK(list.size() <= kRangesMax);
    CAIRN_CHECK(list.empty() || is_truncated || list.back().end <= range.begin);  // in their order
    if (!list.empty() && list.back().continues(range)) {
      list.back().end = range.end;
    } else if (list.size() < kRangesMax) {
      list.push_back(std::move(range));
    } else {
      is_truncated = true;
    }
  }
};

Explanation::Range Explanation::range_of(BucketIndex bucket, BlockNumber number,
                                         std::uint64_t size) const {
  const BlockDescriptor& block = memory_.block(bucket);
  Range range;
  range.begin = offset_of(number);
  range.end = std::min(size, range.begin + kBlockBytes);
  range.tier = tier_name(config_, raw(memory_.tier_of(bucket)));
  range.dirty = block.dirty_pages() != 0;
  range.since_ms = range.dirty ? block.dirty_since_ms() : block.placed_ms();
  range.reason = name_of(block.reason());
  return range;
}

// The resident blocks in order of offset, neighbours of one kind as one range.
Explanation::Ranges Explanation::ranges_of(ObjectIndex index, std::uint64_t size) const {
  const std::uint64_t blocks = std::min((size + kBlockBytes - 1) / kBlockBytes, kBlocksMax);
  Ranges ranges;
  ranges.is_truncated = blocks * kBlockBytes < size;
  std::uint32_t left = memory_.objects().at(index).blocks.load();
  for (std::uint64_t number = 0; number < blocks && left != 0; ++number) {
    const auto block = static_cast<BlockNumber>(number);
    const BucketIndex bucket = memory_.directory().find(index, block);
    if (bucket == BucketIndex::kNone) continue;
    --left;
    const auto pages =
        static_cast<unsigned>(__builtin_popcount(memory_.block(bucket).dirty_pages()));
    ranges.dirty_bytes += pages * kPageBytes;
    ranges.add(range_of(bucket, block, size));
  }
  return ranges;
}

Json Explanation::handling_json(const ObjectHandling& handling) const {
  return {{"mode", cairn::name_of(handling.mode)},
          {"trigger", cairn::name_of(handling.trigger)},
          {"durability", cairn::name_of(handling.durability)},
          {"policy", placement_.name_of(handling.policy)},
          {"tier", handling.home ? tier_name(config_, raw(*handling.home)) : ""},
          {"pinned", handling.pinned},
          {"priority", handling.priority}};
}

// Which rule decides what about the file for the next program that opens it.
Json Explanation::rules_json(const ExplainRequest& request) const {
  Json list = Json::array();
  if (request.path.empty()) return list;
  for (const RuleRegistry::Decision& decision :
       rules_.decisions(request.path, request.size, directories_.all())) {
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

ObjectIndex find_file(const NodeMemory& memory, std::uint64_t device, std::uint64_t inode) {
  const std::uint32_t used = memory.objects().used();
  for (std::uint32_t index = 1; index < used; ++index) {
    const Object& object = memory.objects().at(static_cast<ObjectIndex>(index));
    if (object.has(kObjectLive) && object.inode == inode && raw(object.store()) == device) {
      return static_cast<ObjectIndex>(index);
    }
  }
  return ObjectIndex::kNone;
}

Json Explanation::of(const ExplainRequest& request) const {
  const ObjectIndex index = find_file(memory_, request.device, request.inode);
  if (index == ObjectIndex::kNone) {
    return {
        {"kind", "done"}, {"known", false}, {"size", request.size}, {"rules", rules_json(request)}};
  }
  const Object& object = memory_.objects().at(index);
  // The service does not know the size of a file that goes past the tiers.
  const bool is_past =
      object.through.load() != 0 || object.handling().mode == BufferingMode::kBypass;
  const std::uint64_t size = is_past ? request.size : object.size.load();
  const std::uint32_t now_ms = monotonic_coarse_ms();
  const Ranges ranges = ranges_of(index, size);
  Json list = Json::array();
  for (const Range& range : ranges.list) list.push_back(range.to_json(now_ms));
  return {{"kind", "done"},
          {"known", true},
          {"size", size},
          {"dirty_bytes", ranges.dirty_bytes},
          {"mode", object.through.load() != 0 ? "through" : "buffered"},
          {"handling", handling_json(object.handling())},
          {"rules", rules_json(request)},
          {"ranges", list},
          {"ranges_truncated", ranges.is_truncated}};
}

}  // namespace cairn::node
