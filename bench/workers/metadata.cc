// SPDX-License-Identifier: Apache-2.0
//
// Operations on metadata per second, of one or several processes, in the catalog or in a server:
//   metadata --store catalog|redis|memcached [--socket PATH] [--depth 1] [--records 50000]
//            [--processes 1] [--seed 1]
// Records of objects and places of blocks (metadata_store.h) are all created, then all looked up,
// then all updated, in an order without pattern. The processes share the work: each creates and
// updates records of its own and looks up anybody's. --depth is how many requests a client sends
// before it reads the answers; the catalog is called, so it has none.
// Every answer is compared when it comes; in the end every process looks up everything again.
// Prints {"object_create": operations per second, "object_look_up": ..., "block_update": ..., ...}.
#include <memory>
#include <numeric>

#include "metadata_catalog.h"
#include "metadata_peers.h"
#include "processes.h"

namespace {

using metadata::Kind;
using metadata::Operation;

constexpr unsigned kProcessesMax = 4;
constexpr unsigned kPhases = 6;

struct Plan {
  std::string store;
  std::string socket;
  unsigned depth = 1;
  uint32_t records = 0;
  unsigned processes = 1;
  uint64_t seed = 1;
};

// Shared by the processes: where they meet, and when each began and ended each phase.
struct Shared {
  worker::MeetingPoint point;
  int64_t begin[kPhases][kProcessesMax];
  int64_t end[kPhases][kProcessesMax];
};

void shuffle(std::vector<uint32_t>* numbers, uint64_t seed) {
  worker::Random random(seed);
  for (size_t left = numbers->size(); left > 1; --left) {
    std::swap((*numbers)[left - 1], (*numbers)[random.below(left)]);
  }
}

// What one process does in each phase.
struct Work {
  std::vector<uint32_t> everything;
  std::vector<uint32_t> own;
  std::vector<uint32_t> to_look_up;
  std::vector<uint32_t> to_update;

  Work(const Plan& plan, unsigned process) : everything(plan.records) {
    std::iota(everything.begin(), everything.end(), 0u);
    std::vector<uint32_t> mixed = everything;
    shuffle(&mixed, plan.seed);
    for (uint32_t at = process; at < plan.records; at += plan.processes) {
      own.push_back(at);
      to_look_up.push_back(mixed[at]);
    }
    to_update = own;
    shuffle(&to_update, plan.seed + 1 + process);
  }
};

std::unique_ptr<metadata::Store> open_store(const Plan& plan, const cairn::NodeMemory& memory,
                                            const metadata::Places& places, unsigned process,
                                            const Work& work) {
  if (plan.store == "redis") {
    return std::make_unique<metadata::Redis>(plan.socket, plan.depth, plan.records);
  }
  if (plan.store == "memcached") {
    return std::make_unique<metadata::Memcached>(plan.socket, plan.depth, plan.records);
  }
  return std::make_unique<metadata::Catalog>(memory, places, process, work.own);
}

void run_process(const Plan& plan, const cairn::NodeMemory& memory, const metadata::Places& places,
                 Shared* shared, unsigned process) {
  const Work work(plan, process);
  const auto store = open_store(plan, memory, places, process, work);
  unsigned phase = 0;
  for (const Kind kind : {Kind::kObject, Kind::kBlock}) {
    for (const Operation operation : {Operation::kCreate, Operation::kLookUp, Operation::kUpdate}) {
      const auto& numbers = operation == Operation::kCreate   ? work.own
                            : operation == Operation::kLookUp ? work.to_look_up
                                                              : work.to_update;
      shared->point.meet(plan.processes);
      shared->begin[phase][process] = worker::now_ns();
      store->run(kind, operation, numbers, 0);
      shared->end[phase][process] = worker::now_ns();
      ++phase;
    }
    shared->point.meet(plan.processes);
    store->check(kind, work.everything, 1);
  }
}

void report(const Plan& plan, const Shared& shared) {
  static constexpr const char* kNames[kPhases] = {"object_create", "object_look_up",
                                                  "object_update", "block_create",
                                                  "block_look_up", "block_update"};
  for (unsigned phase = 0; phase < kPhases; ++phase) {
    const int64_t* begin = shared.begin[phase];
    const int64_t* end = shared.end[phase];
    const int64_t ns = *std::max_element(end, end + plan.processes) -
                       *std::min_element(begin, begin + plan.processes);
    printf("%s\"%s\": %.0f", phase == 0 ? "{" : ", ", kNames[phase],
           plan.records * 1e9 / static_cast<double>(ns));
  }
  printf("}\n");
}

}  // namespace

int main(int count, char** words) {
  const worker::Options options(count, words);
  Plan plan{.store = options.text("--store", "catalog"),
            .socket = options.text("--socket", ""),
            .depth = static_cast<unsigned>(options.number("--depth", 1)),
            .records = static_cast<uint32_t>(options.number("--records", 50'000)),
            .processes = static_cast<unsigned>(options.number("--processes", 1)),
            .seed = options.number("--seed", 1)};
  if (plan.store != "catalog" && plan.store != "redis" && plan.store != "memcached") {
    worker::fail("--store: catalog, redis or memcached");
  }
  if (plan.processes == 0 || plan.processes > kProcessesMax) worker::fail("--processes: 1 to 4");
  if (plan.records == 0) worker::fail("--records: at least 1");
  auto* shared = worker::map_shared<Shared>(1);
  cairn::NodeMemory memory;
  metadata::Places places;
  if (plan.store == "catalog") {
    memory = metadata::create_node_memory(plan.records, plan.processes);
    for (auto& of_version : places.of_version) {
      of_version = worker::map_shared<std::atomic<uint32_t>>(plan.records);
    }
  }
  worker::run_processes(plan.processes, [&](unsigned process) {
    run_process(plan, memory, places, shared, process);
  });
  report(plan, *shared);
  return 0;
}
