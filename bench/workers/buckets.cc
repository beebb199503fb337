// SPDX-License-Identifier: Apache-2.0
//
// What it costs to have memory for a request, use it and give it back: buckets of the pool against
// malloc (glibc's, or another allocator's that is preloaded).
//   buckets --from buckets|malloc [--request 1M] [--held 64M] [--use copy|touch|none]
//           [--life steady|program] [--rounds 15] [--operations 1] [--processes 1]
// A burst acquires and uses requests until --held bytes are held, then gives all of them back in
// the order in which they came, as a buffer does whose contents were stored meanwhile. --held equal
// to --request has one request at a time.
//   copy     the whole request is copied in
//   touch    one cache line of each page is: the memory is there and can be written
//   none     nothing: only the bookkeeping
//   steady   bursts follow one another in one process; the first is not counted, so that both sides
//            have what memory they keep
//   program  every round is a new process, measured from its first burst on
// A round ends when --operations requests were served. After the measurement the same is done once
// more and compared. Prints {"ns": per request, median of the rounds (and of the processes),
// "allocator": the one that served}.
//
// The one side is a node's memory (memory/tiers/node_memory.h) that was in use before, so its pages
// are allocated: a bucket is taken from a lease with its descriptor locked, its slabs are mapped as
// memory/buffer/block_access.cc does it, and the same owner releases it.
#include <dlfcn.h>

#include "memory/tiers/actor.h"
#include "memory/tiers/node_memory.h"
#include "processes.h"
#include "worker.h"

namespace {

using cairn::BucketIndex;
using cairn::kBlockBytes;
using cairn::kPageBytes;

constexpr size_t kLineBytes = 64;
constexpr unsigned kProcessesMax = 4;

enum class Use { kCopy, kTouch, kNone };

struct Plan {
  size_t request = 0;
  size_t requests = 0;  // held at a time
  Use use = Use::kCopy;
  bool is_program = false;
  uint64_t operations = 0;
  unsigned rounds = 0;
  unsigned processes = 1;
};

// Puts what `use` says of `source` into `place`; the compiler may not know that nobody reads it.
void fill(char* place, const char* source, size_t size, Use use) {
  if (use == Use::kCopy) memcpy(place, source, size);
  if (use == Use::kTouch) {
    for (size_t at = 0; at < size; at += kPageBytes) memcpy(place + at, source + at, kLineBytes);
  }
  __asm__ volatile("" : : "r"(place) : "memory");
}

bool has_content(const char* place, const char* source, size_t size, Use use) {
  if (use == Use::kCopy) return memcmp(place, source, size) == 0;
  for (size_t at = 0; use == Use::kTouch && at < size; at += kPageBytes) {
    if (memcmp(place + at, source + at, kLineBytes) != 0) return false;
  }
  return true;
}

// One piece per request.
class Malloc {
 public:
  struct Backing {
    explicit Backing(const Plan&) {}
    void check() const {}
  };
  Malloc(const Backing&, const Plan& plan, unsigned)
      : request_(plan.request), held_(plan.requests) {}

  static size_t pieces_of(const Plan&) { return 1; }
  static size_t piece_bytes(const Plan& plan) { return plan.request; }

  char* acquire(size_t slot, size_t) {
    held_[slot] = static_cast<char*>(malloc(request_));
    if (__builtin_expect(held_[slot] == nullptr, 0)) worker::fail("malloc: no memory");
    return held_[slot];
  }
  char* at(size_t slot, size_t) const { return held_[slot]; }
  void release(size_t slot) { free(held_[slot]); }

  // A preloaded allocator shows by what it exports.
  static const char* name() {
    return dlsym(RTLD_DEFAULT, "tc_version") != nullptr ? "tcmalloc" : "glibc";
  }

 private:
  size_t request_;
  std::vector<char*> held_;
};

// A request is as many buckets of one block as it needs.
class Buckets {
 public:
  // The node, made by the parent of all processes.
  struct Backing {
    explicit Backing(const Plan& plan) {
      cairn::MemoryShape shape;
      // Twice what is held: nobody searches for the last free slab.
      const size_t blocks = 2 * plan.processes * plan.requests * pieces_of(plan);
      shape.tier_bytes[0] = std::max<size_t>(blocks, 1024) * kBlockBytes;
      shape.clients_max = 8;
      shape.objects_max = 64;
      shape.huge_pages = static_cast<uint32_t>(cairn::HugePages::kAuto);
      auto created = cairn::NodeMemory::create(shape, {});
      if (!created) worker::fail("no memory for the node");
      memory = std::move(created.value());
      memory.data().populate(0, shape.tier_bytes[0]);
    }
    void check() const {
      const cairn::BucketPool& pool = memory.pool(cairn::TierId::kMemory);
      if (pool.count_free_slabs() != pool.slab_count() || pool.free_slabs() != pool.slab_count()) {
        worker::fail("buckets were lost");
      }
    }
    cairn::NodeMemory memory;
  };

  Buckets(const Backing& backing, const Plan& plan, unsigned process)
      : memory_(backing.memory),
        pool_(memory_.pool(cairn::TierId::kMemory)),
        pieces_(pieces_of(plan)),
        held_(plan.requests * pieces_) {
    const auto slot = static_cast<uint16_t>(process + 1);
    actor_.memory = &memory_;
    actor_.self = memory_.owners().current(slot);
    actor_.counters = &memory_.slot(slot).shards[0];
  }
  Buckets(const Buckets&) = delete;
  Buckets& operator=(const Buckets&) = delete;
  ~Buckets() { actor_.drop_leases(); }

  static size_t pieces_of(const Plan& plan) {
    return (plan.request + kBlockBytes - 1) / kBlockBytes;
  }
  static size_t piece_bytes(const Plan&) { return kBlockBytes; }

  char* acquire(size_t slot, size_t piece) {
    cairn::Lease::Fresh fresh;
    const auto wanted = static_cast<unsigned>(pieces_ - piece);
    cairn::FreshBlock block =
        actor_.leases[0].take(pool_, {cairn::SizeClass::k64KiB, wanted}, actor_.worker(), &fresh);
    if (__builtin_expect(!block, 0)) worker::fail("the tier is full");
    const BucketIndex bucket = std::move(block).leave_locked();
    if (fresh.first_slab + fresh.count > mapped_slabs_) map_slabs(fresh);
    held_[slot * pieces_ + piece] = bucket;
    return reinterpret_cast<char*>(memory_.bytes(bucket));
  }
  char* at(size_t slot, size_t piece) const {
    return reinterpret_cast<char*>(memory_.bytes(held_[slot * pieces_ + piece]));
  }
  void release(size_t slot) {
    for (size_t piece = 0; piece < pieces_; ++piece) {
      const BucketIndex bucket = held_[slot * pieces_ + piece];
      actor_.leases[0].release(pool_, cairn::FreshBlock::of_locked(actor_.worker(), bucket),
                               actor_.self);
    }
  }
  static const char* name() { return "buckets"; }

 private:
  [[gnu::cold]] void map_slabs(const cairn::Lease::Fresh& fresh) {
    memory_.data().populate(fresh.first_slab * kBlockBytes, fresh.count * kBlockBytes);
    mapped_slabs_ = fresh.first_slab + fresh.count;
  }

  const cairn::NodeMemory& memory_;
  cairn::BucketPool& pool_;
  size_t pieces_;
  std::vector<BucketIndex> held_;
  uint32_t mapped_slabs_ = 0;
  cairn::Actor actor_;
};

// What one process does.
template <typename Memory>
class Bursts {
 public:
  Bursts(const typename Memory::Backing& backing, const Plan& plan, unsigned process,
         const worker::Content& content)
      : plan_(plan),
        pieces_(Memory::pieces_of(plan)),
        memory_(backing, plan, process),
        content_(content) {}

  void burst() {
    acquire_all();
    for (size_t slot = 0; slot < plan_.requests; ++slot) memory_.release(slot);
  }
  // One round; returns ns per request.
  double round() {
    const int64_t start = worker::now_ns();
    uint64_t served = 0;
    do {
      burst();
      served += plan_.requests;
    } while (served < plan_.operations);
    return static_cast<double>(worker::now_ns() - start) / static_cast<double>(served);
  }
  // All requests hold their own bytes at the same time: nothing was given out twice.
  void verify() {
    acquire_all();
    for (size_t slot = 0; slot < plan_.requests; ++slot) {
      for (size_t piece = 0; piece < pieces_; ++piece) {
        if (!has_content(memory_.at(slot, piece), source_of(slot, piece), length_of(piece),
                         plan_.use)) {
          worker::fail("wrong content in request " + std::to_string(slot));
        }
      }
      memory_.release(slot);
    }
  }

 private:
  void acquire_all() {
    for (size_t slot = 0; slot < plan_.requests; ++slot) {
      for (size_t piece = 0; piece < pieces_; ++piece) {
        char* place = memory_.acquire(slot, piece);
        fill(place, source_of(slot, piece), length_of(piece), plan_.use);
      }
    }
  }
  const char* source_of(size_t slot, size_t piece) const {
    return content_.at(slot * plan_.request) + piece * Memory::piece_bytes(plan_);
  }
  size_t length_of(size_t piece) const {
    return std::min(Memory::piece_bytes(plan_), plan_.request - piece * Memory::piece_bytes(plan_));
  }

  Plan plan_;
  size_t pieces_;
  Memory memory_;
  const worker::Content& content_;
};

// ns per request of every round of every process.
struct Results {
  worker::MeetingPoint start;
  double ns[kProcessesMax][256];
};

template <typename Memory>
void measure(const Plan& plan) {
  const typename Memory::Backing backing(plan);
  const worker::Content content(0);
  auto* results = worker::map_shared<Results>(1);
  const auto steady = [&](unsigned process) {
    Bursts<Memory> bursts(backing, plan, process, content);
    bursts.burst();
    results->start.meet(plan.processes);
    for (unsigned round = 0; round < plan.rounds; ++round) {
      results->ns[process][round] = bursts.round();
    }
    bursts.verify();
  };
  if (!plan.is_program) worker::run_processes(plan.processes, steady);
  for (unsigned round = 0; plan.is_program && round < plan.rounds; ++round) {
    worker::run_processes(1, [&](unsigned process) {
      Bursts<Memory> bursts(backing, plan, process, content);
      results->ns[process][round] = bursts.round();
      bursts.verify();
    });
  }
  backing.check();
  std::vector<double> ns;
  for (unsigned process = 0; process < plan.processes; ++process) {
    ns.insert(ns.end(), results->ns[process], results->ns[process] + plan.rounds);
  }
  printf("{\"ns\": %.3f, \"allocator\": \"%s\"}\n", worker::median(ns), Memory::name());
}

Plan read_plan(const worker::Options& options) {
  Plan plan;
  plan.request = options.number("--request", 64 << 10);
  plan.operations = options.number("--operations", 1);
  plan.rounds = static_cast<unsigned>(options.number("--rounds", 15));
  plan.processes = static_cast<unsigned>(options.number("--processes", 1));
  const std::string life = options.text("--life", "steady");
  if (life != "steady" && life != "program") worker::fail("--life: steady or program");
  plan.is_program = life == "program";
  const std::string use = options.text("--use", "copy");
  plan.use = use == "copy" ? Use::kCopy : use == "touch" ? Use::kTouch : Use::kNone;
  if (use != "copy" && use != "touch" && use != "none") worker::fail("--use: copy, touch or none");
  if (plan.request == 0 || plan.request > worker::Content::kLargestRequest) {
    worker::fail("--request: 1 to 4M");
  }
  plan.requests = options.number("--held", plan.request) / plan.request;
  if (plan.requests == 0) worker::fail("--held: at least one request");
  if (plan.rounds == 0 || plan.rounds > 256) worker::fail("--rounds: 1 to 256");
  if (plan.processes == 0 || plan.processes > kProcessesMax) worker::fail("--processes: 1 to 4");
  if (plan.is_program && plan.processes > 1) worker::fail("--life program: one process at a time");
  return plan;
}

}  // namespace

int main(int count, char** words) {
  const worker::Options options(count, words);
  const Plan plan = read_plan(options);
  const std::string from = options.text("--from", "buckets");
  if (from == "buckets") {
    measure<Buckets>(plan);
  } else if (from == "malloc") {
    measure<Malloc>(plan);
  } else {
    worker::fail("--from: buckets or malloc");
  }
  return 0;
}
