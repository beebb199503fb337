// SPDX-License-Identifier: Apache-2.0
// The request ring as a hostile client writes it: bytes over the whole table, which the service
// takes from, answers into, sweeps and takes over. What it understands names objects in use alone.
#include "memory/arena/request_ring.h"

#include <array>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "service/attachment/client_message.h"

namespace {

using namespace cairn;
using namespace cairn::node;

constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kObjects = 16;
constexpr std::uint16_t kService = 1;

void act(const RequestRing& ring, const OwnerTable& owners) {
  std::array<Object, kObjects> objects{};
  objects[3].set(kObjectLive);
  ObjectBoard board{};
  UnservedBoard unserved{};
  const ObjectTable table{objects.data(), kObjects, HashLines(), &board, &unserved};
  ring.take(owners, [&](const RequestRing::Taken& taken) {
    CAIRN_CHECK(taken.place.slot < kSlots);
    const ClientQuestion question = decode(taken.question, table);
    if (const auto* flush = std::get_if<message::Flush>(&question))
      CAIRN_CHECK(flush->object == ObjectIndex{3});
    if (const auto* meet = std::get_if<message::MeetUnserved>(&question))
      CAIRN_CHECK(meet->object == ObjectIndex{3});
    ring.answer(taken.place, 0, owners);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto table = std::make_unique<RequestRing::Table>();
  std::array<std::atomic<std::uint32_t>, 4> generations{};
  const OwnerTable owners(generations.data(), generations.size());
  const RequestRing ring(table.get(), kSlots, kService);
  fuzz::FuzzInput input(data, size);
  while (!input.is_at_end()) {
    const auto step = input.take<std::uint8_t>();
    const auto at = input.take<std::uint16_t>() % (sizeof *table - sizeof(std::uint64_t));
    const auto word = input.take<std::uint64_t>();
    std::memcpy(reinterpret_cast<char*>(table.get()) + at, &word, sizeof word);
    switch (step % 4) {
      case 0:
        act(ring, owners);
        break;
      case 1:
        CAIRN_CHECK(ring.return_taken() <= kSlots);
        break;
      case 2:
        CAIRN_CHECK(ring.release_dead(owners) <= kSlots);
        break;
      default:
        CAIRN_CHECK(ring.used_slots() <= kSlots);
    }
  }
  return 0;
}
