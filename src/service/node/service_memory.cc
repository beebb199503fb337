// SPDX-License-Identifier: Apache-2.0
#include "service/node/service_memory.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "base/size_text.h"
#include "base/test_capacities.h"

namespace cairn::node {
namespace {

// The durable tier's log has the rest.
std::uint64_t pool_bytes_of(const NodeConfig& config, std::size_t tier) {
  const std::uint64_t capacity = config.tiers[tier].capacity_bytes;
  return tier == durable_tier_of(config) ? capacity - std::min(capacity, config.durable_log_bytes)
                                         : capacity;
}

MemoryShape shape_of(const NodeConfig& config) {
  MemoryShape shape;
  shape.tier_bytes[0] = config.ram_capacity_bytes / kBlockBytes * kBlockBytes;
  for (std::size_t tier = 0; tier < config.tiers.size(); ++tier) {
    shape.tier_bytes[tier + 1] = pool_bytes_of(config, tier) / kBlockBytes * kBlockBytes;
  }
  if (config.swap_capacity_bytes >= kBlockBytes) {
    shape.swap_tier = static_cast<std::uint32_t>(config.tiers.size() + 1);
    CAIRN_CHECK(shape.swap_tier < kTiersMax);
    shape.tier_bytes[shape.swap_tier] = config.swap_capacity_bytes / kBlockBytes * kBlockBytes;
  }
  shape.clients_max = config.clients_max;
  shape.objects_max =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(config.objects_max, UINT32_MAX));
  shape.huge_pages = static_cast<std::uint32_t>(config.huge_pages);
  shape.checksums = static_cast<std::uint32_t>(config.checksums);
  shape.clients_max = capacity_of("clients", shape.clients_max);
  // 0 stands for what the tiers make of it: any number is less.
  const std::uint32_t objects = capacity_of("objects", UINT32_MAX);
  if (objects != UINT32_MAX) shape.objects_max = objects;
  shape.descriptions_max = capacity_of("descriptions", shape.descriptions_max);
  shape.holds_max = capacity_of("holds", shape.holds_max);
  shape.requests_max = capacity_of("requests", shape.requests_max);
  return shape;
}

void label_memory(const NodeMemory& memory, KeptDescriptors& labels) {
  labels.note(memory.control().fd(), {KeptKind::kControlMemory});
  labels.note(memory.data().fd(), {KeptKind::kDataMemory});
  for (unsigned tier = 1; tier < kTiersMax; ++tier) {
    const int pool = memory.tier(static_cast<TierId>(tier)).on_device({}).descriptor;
    if (pool >= 0) labels.note(pool, {KeptKind::kPool, tier});
  }
}

// The descriptors of a dead service's memory. They stay open unless they are closed.
class InheritedMemory {
 public:
  InheritedMemory(Inheritance& from, KeptDescriptors& labels)
      : labels_(labels),
        control_(from.take(KeptKind::kControlMemory).release()),
        data_(from.take(KeptKind::kDataMemory).release()) {
    for (unsigned tier = 0; tier < kTiersMax; ++tier)
      pools_[tier] = from.take(KeptKind::kPool, tier).release();
  }
  bool is_whole() const { return control_ >= 0 && data_ >= 0; }
  Result<NodeMemory> attach(const MemoryShape& shape) const {
    std::array<int, kTiersMax> pools{};
    std::transform(pools_.begin(), pools_.end(), pools.begin(), copy_of);
    return NodeMemory::attach(shape, copy_of(control_), copy_of(data_), pools,
                              SharedSegment::Descriptor::kKeep);
  }
  void close() {
    close_one(control_);
    close_one(data_);
    for (const int pool : pools_) close_one(pool);
  }

 private:
  static int copy_of(int fd) { return fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 0); }
  void close_one(int fd) {
    labels_.forget(fd);
    UniqueFd(fd).reset();
  }

  KeptDescriptors& labels_;
  const int control_;
  const int data_;
  std::array<int, kTiersMax> pools_{};
};

}  // namespace

Result<NodeMemory> create_memory(const NodeConfig& config, KeptDescriptors& labels) {
  if (config.tiers.size() > kFileTiersMax) {
    return Status(StatusCode::kInvalid,
                  "at most " + std::to_string(kFileTiersMax) + " file tiers are possible");
  }
  // RAM, the file tiers and the swap tier.
  static_assert(1 + kFileTiersMax + 1 == kTiersMax);
  std::array<std::string, kTiersMax> directories;
  for (std::size_t tier = 0; tier < config.tiers.size(); ++tier)
    directories[tier + 1] = config.tiers[tier].directory;
  if (config.swap_capacity_bytes != 0) directories[config.tiers.size() + 1] = config.swap_directory;
  auto memory = NodeMemory::create(shape_of(config), directories);
  if (memory.is_ok() && config.huge_pages == HugePages::kReserved &&
      memory->data().huge_pages() != HugePages::kReserved) {
    memory = Status(StatusCode::kExhausted,
                    "ram.huge_pages is hugetlb, but too few huge pages are reserved for " +
                        format_size(config.ram_capacity_bytes) +
                        ": raise vm.nr_hugepages, or set it to auto");
  }
  if (memory) label_memory(*memory, labels);
  return memory;
}

// The numbers that have labels stay open until the memory is mapped: a try in vain closes copies
// alone, and leaves the memory to the next service.
Result<NodeMemory> inherit_memory(const NodeConfig& config, Inheritance& inherited,
                                  KeptDescriptors& labels) {
  InheritedMemory left(inherited, labels);
  if (!left.is_whole()) return Status(StatusCode::kNotFound, "no service has left its memory");
  auto memory = left.attach(shape_of(config));
  if (!memory) return memory.status();
  label_memory(*memory, labels);
  left.close();
  return memory;
}

}  // namespace cairn::node
