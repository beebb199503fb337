// SPDX-License-Identifier: Apache-2.0
#include "interleavings/testing/explorer.h"

#include <cstdio>

#include "base/check.h"

namespace cairn::stepping {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr unsigned kTimeoutsMax = 1000;
Explorer* g_explorer = nullptr;

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = ((hash + 0xbf58476d1ce4e5b9ULL) ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 29;
}
// Four sums that do not wait for each other.
std::uint64_t mix_all(std::uint64_t hash, std::span<const std::byte> bytes) {
  std::array<std::uint64_t, 4> sums = {hash, 1, 2, 3};
  std::array<std::uint64_t, 4> words{};
  std::size_t at = 0;
  for (; at + sizeof words <= bytes.size(); at += sizeof words) {
    std::memcpy(words.data(), bytes.data() + at, sizeof words);
    for (std::size_t lane = 0; lane < sums.size(); ++lane)
      sums[lane] = mix(sums[lane], words[lane]);
  }
  for (; at < bytes.size(); ++at) sums[0] = mix(sums[0], static_cast<std::uint64_t>(bytes[at]));
  return mix(mix(sums[0], sums[1]), mix(sums[2], sums[3]));
}

// Leaves the stack that runs for another one. All that a call keeps is on the stack left.
extern "C" void cairn_change_stack(std::byte** left, std::byte* entered);
__asm__(R"(
  .text
  .type cairn_change_stack, @function
cairn_change_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size cairn_change_stack, . - cairn_change_stack
)");

}  // namespace

bool step(const void* address, Access access, std::uint64_t bits) {
  Explorer* self = g_explorer;
  if (self == nullptr || self->current_ < 0) return false;
  const auto actor = static_cast<unsigned>(self->current_);
  Explorer::Fiber& fiber = self->fibers_[actor];
  const auto* memory = self->scene_.memory().data();
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory);
  if (offset < self->is_aside_.size() && self->is_aside_[offset]) return false;
  if (access == Access::kLoad) {
    // One more look of an actor that waits, which nobody can tell from the look before.
    const bool is_same =
        fiber.is_hurrying && fiber.seen_address == address && fiber.seen_bits == bits;
    if (is_same) return false;
    if (self->scene_.is_held(actor, address)) return true;
  }
  fiber.learned = mix(fiber.learned, offset << 2 | static_cast<std::uint64_t>(access));
  if (!std::exchange(fiber.may_pass, false)) self->give_way();
  if (access == Access::kLoad) fiber.seen_address = address;
  if (self->trace_ != nullptr) self->trace(actor, access, offset, bits);
  return true;
}

void learn(Access access, std::uint64_t bits) {
  Explorer* self = g_explorer;
  Explorer::Fiber& fiber = self->fibers_[static_cast<std::size_t>(self->current_)];
  if (access == Access::kLoad) fiber.seen_bits = bits;
  fiber.learned = mix(fiber.learned, bits);
}

void forget_all_but(std::initializer_list<std::uint64_t> known) {
  Explorer* self = g_explorer;
  if (self->current_ < 0) return;
  std::uint64_t& learned = self->fibers_[static_cast<std::size_t>(self->current_)].learned;
  learned = known.size();
  for (const std::uint64_t number : known) learned = mix(learned, number);
}

void relax() {
  Explorer* self = g_explorer;
  if (self == nullptr || self->current_ < 0) return;
  Explorer::Fiber& fiber = self->fibers_[static_cast<std::size_t>(self->current_)];
  if (!fiber.is_hurrying) self->wait();
}

bool sleep_on(const void* address, std::uint32_t bits, std::uint32_t expected) {
  Explorer* self = g_explorer;
  if (self == nullptr || self->current_ < 0) return false;
  Explorer::Fiber& fiber = self->fibers_[static_cast<std::size_t>(self->current_)];
  if (bits != expected) return true;
  fiber.is_hurrying = false;
  fiber.seen_address = address;
  fiber.seen_bits = bits;
  self->wait();
  return !fiber.is_hurrying;
}

void require(bool is_so, const char* what) {
  if (is_so) return;
  Explorer* self = g_explorer;
  self->fail(what);
  // The actor goes no further; outside of actors the caller does.
  while (self->current_ >= 0) self->give_way();
}

Explorer::Explorer(Scene& scene, std::vector<std::string> programs, Options options)
    : scene_(scene), programs_(std::move(programs)), options_(options), fibers_(programs_.size()) {
  const std::span<std::byte> memory = scene_.memory();
  first_memory_.assign(memory.begin(), memory.end());
  is_aside_.resize(memory.size());
  for (std::size_t at = 0; at < memory.size(); ++at)
    is_aside_[at] = scene_.is_aside(memory.data() + at);
  for (Fiber& fiber : fibers_) fiber.stack = std::make_unique<std::byte[]>(kStackBytes);
  CAIRN_CHECK(g_explorer == nullptr);
  g_explorer = this;
}

Explorer::~Explorer() { g_explorer = nullptr; }

void Explorer::on_failed_check(const char* expression, const char* file, int line) {
  char text[300];
  std::snprintf(text, sizeof text, "%s (%s:%d)", expression, file, line);
  require(false, text);
}

void Explorer::fail(const char* what) {
  if (!has_failed()) explored_.wrong = what;
}

// Each actor goes on to its first step, which nobody else can see.
void Explorer::restart() {
  std::memcpy(scene_.memory().data(), first_memory_.data(), first_memory_.size());
  deaths_ = 0;
  for (std::size_t actor = 0; actor < fibers_.size(); ++actor) {
    start(fibers_[actor]);
    perform(Move{static_cast<std::uint8_t>(actor)});
  }
}

Explorer::Snapshot Explorer::take_snapshot() const {
  Snapshot snapshot{.deaths = deaths_};
  const std::span<const std::byte> memory = scene_.memory();
  snapshot.bytes.assign(memory.begin(), memory.end());
  for (const Fiber& fiber : fibers_) {
    snapshot.progress.push_back(fiber);
    if (fiber.life > Life::kWaits) continue;
    snapshot.bytes.insert(snapshot.bytes.end(), fiber.stack_pointer,
                          fiber.stack.get() + kStackBytes);
  }
  return snapshot;
}

void Explorer::go_back_to(const Snapshot& snapshot) {
  const std::span<std::byte> memory = scene_.memory();
  const std::byte* from = snapshot.bytes.data();
  std::memcpy(memory.data(), from, memory.size());
  from += memory.size();
  for (std::size_t actor = 0; actor < fibers_.size(); ++actor) {
    Fiber& fiber = fibers_[actor];
    static_cast<Progress&>(fiber) = snapshot.progress[actor];
    if (fiber.life > Life::kWaits) continue;
    const auto used =
        static_cast<std::size_t>(fiber.stack.get() + kStackBytes - fiber.stack_pointer);
    std::memcpy(fiber.stack_pointer, from, used);
    from += used;
  }
  deaths_ = snapshot.deaths;
}

void Explorer::start(Fiber& fiber) {
  static_cast<Progress&>(fiber) = Progress{.life = Life::kRuns};
  auto top =
      reinterpret_cast<std::uintptr_t>(fiber.stack.get() + kStackBytes) & ~std::uintptr_t{15};
  auto* words = reinterpret_cast<std::uintptr_t*>(top) - 8;
  std::memset(words, 0, 8 * sizeof *words);
  words[6] = reinterpret_cast<std::uintptr_t>(&Explorer::enter);  // where the change returns to
  fiber.stack_pointer = reinterpret_cast<std::byte*>(words);
}

void Explorer::enter() { g_explorer->run_program(); }

void Explorer::run_program() {
  const auto actor = static_cast<unsigned>(current_);
  Fiber& fiber = fibers_[actor];
  for (; fiber.operation < programs_[actor].size(); ++fiber.operation) {
    // Nothing is left of the operation before but what lies in memory.
    fiber.learned = mix_all(fiber.operation, scene_.own(actor));
    fiber.is_hurrying = false;
    fiber.seen_address = nullptr;
    give_way();
    scene_.act(actor, programs_[actor][fiber.operation]);
  }
  scene_.finish(actor);
  fiber.life = Life::kDone;
  give_way();
}

void Explorer::give_way() {
  Fiber& fiber = fibers_[static_cast<std::size_t>(current_)];
  cairn_change_stack(&fiber.stack_pointer, scheduler_);
}

void Explorer::wait() {
  Fiber& fiber = fibers_[static_cast<std::size_t>(current_)];
  fiber.life = Life::kWaits;
  fiber.deaths_seen = deaths_;
  give_way();
  fiber.life = Life::kRuns;
  fiber.is_hurrying = !has_changed(fiber);
  fiber.may_pass = !fiber.is_hurrying;
  fiber.deaths_seen = deaths_;
  if (fiber.is_hurrying && ++fiber.timeouts > kTimeoutsMax) require(false, "waits for ever");
}

void Explorer::perform(Move move) {
  Fiber& fiber = fibers_[move.actor];
  if (trace_ != nullptr && move.dies)
    *trace_ += "\n  actor " + std::to_string(move.actor) + " dies";
  if (move.dies) {
    fiber.life = Life::kDead;
    ++deaths_;
    scene_.bury(move.actor);
    return;
  }
  current_ = move.actor;
  cairn_change_stack(&scheduler_, fiber.stack_pointer);
  current_ = -1;
}

bool Explorer::has_changed(const Fiber& fiber) const {
  std::uint32_t bits = 0;  // every word that is waited for has its owner in the low half
  std::memcpy(&bits, fiber.seen_address, sizeof bits);
  return bits != static_cast<std::uint32_t>(fiber.seen_bits);
}

bool Explorer::is_let_on(const Fiber& fiber) const {
  if (fiber.life == Life::kRuns) return true;
  return fiber.life == Life::kWaits && (fiber.deaths_seen != deaths_ || has_changed(fiber));
}

std::vector<Explorer::Move> Explorer::moves() const {
  std::vector<Move> moves;
  for (std::uint8_t actor = 0; actor < fibers_.size(); ++actor) {
    if (is_let_on(fibers_[actor])) moves.push_back(Move{actor});
  }
  // All that are left wait for each other until the time is up.
  const bool is_stuck = moves.empty();
  for (std::uint8_t actor = 0; actor < fibers_.size(); ++actor) {
    const Life life = fibers_[actor].life;
    if (is_stuck && life == Life::kWaits) moves.push_back(Move{actor});
    const bool may_die = deaths_ < options_.deaths_max && life <= Life::kWaits;
    if (may_die) moves.push_back(Move{actor, true});
  }
  return moves;
}

std::uint64_t Explorer::state() const {
  std::uint64_t hash = mix_all(deaths_ + 1, scene_.memory());
  for (const Fiber& fiber : fibers_) {
    hash = mix(hash, static_cast<std::uint64_t>(fiber.life));
    if (fiber.life > Life::kWaits) continue;  // whatever it knew
    hash = mix(hash, fiber.operation);
    hash = mix(hash, fiber.learned);
    hash = mix(hash, fiber.deaths_seen << 2 | fiber.is_hurrying << 1 | fiber.may_pass);
  }
  return hash;
}

void Explorer::end_order() {
  scene_.settle();
  ++explored_.ends;
}

// From the present state on, always by the first move, until all that follows is known. Returns how
// many orders go through where that ended.
long double Explorer::go_down(std::vector<Node>& path) {
  for (;;) {
    scene_.check();
    if (has_failed()) return 0;
    const std::uint64_t now = state();
    if (const auto known = known_.find(now); known != known_.end()) {
      CAIRN_CHECK(known->second > 0);  // no order comes back to where it was
      return known->second;
    }
    ++explored_.states;
    std::vector<Move> next = moves();
    if (next.empty()) {
      end_order();
      return has_failed() ? 0 : known_[now] = 1;
    }
    known_[now] = 0;
    const Move first = next.front();
    path.push_back(Node{now, next.size() > 1 ? take_snapshot() : Snapshot(), std::move(next)});
    perform(first);
  }
}

Explored Explorer::explore_all() {
  explored_ = Explored();
  known_.clear();
  const CheckHandler before = set_check_handler(&on_failed_check);
  std::vector<Node> path;
  restart();
  do {
    long double orders = go_down(path);
    while (!has_failed() && !path.empty()) {
      Node& last = path.back();
      last.orders += orders;
      if (++last.taken < last.moves.size()) break;
      orders = known_[last.state] = last.orders;
      path.pop_back();
    }
    if (!path.empty() && !has_failed()) {
      go_back_to(path.back().snapshot);
      perform(path.back().moves[path.back().taken]);
    }
    explored_.orders = orders;
  } while (!path.empty() && !has_failed());
  if (has_failed()) {
    std::vector<Move> order;
    for (const Node& node : path) order.push_back(node.moves[node.taken]);
    describe(order);
  }
  set_check_handler(before);
  return explored_;
}

// One move in `kDeathsIn` is a death, where one may be.
Explored Explorer::explore_some(std::uint64_t count, std::uint64_t seed) {
  constexpr std::uint32_t kDeathsIn = 40;
  explored_ = Explored();
  const CheckHandler before = set_check_handler(&on_failed_check);
  RandomSource random(seed);
  std::vector<Move> order;
  for (std::uint64_t run = 0; run < count && !has_failed(); ++run) {
    restart();
    order.clear();
    for (std::vector<Move> next = moves(); !next.empty() && !has_failed(); next = moves()) {
      Move move = next[random.below(static_cast<std::uint32_t>(next.size()))];
      if (move.dies && !next.front().dies && random.below(kDeathsIn) != 0) move = next.front();
      order.push_back(move);
      perform(move);
      scene_.check();
      ++explored_.states;
    }
    if (!has_failed()) end_order();
  }
  explored_.orders = static_cast<long double>(explored_.ends);
  if (has_failed()) describe(order);
  set_check_handler(before);
  return explored_;
}

void Explorer::trace(unsigned actor, Access access, std::size_t offset, std::uint64_t bits) {
  constexpr const char* kNames[] = {"load", "store", "change"};
  char line[80];
  std::snprintf(line, sizeof line, "\n  actor %u %s +%zu %llx", actor,
                kNames[static_cast<unsigned>(access)], offset,
                static_cast<unsigned long long>(bits));
  *trace_ += line;
}

// The order once more, step by step.
void Explorer::describe(const std::vector<Move>& order) {
  std::string trace;
  trace_ = &trace;
  restart();
  for (const Move move : order) perform(move);
  trace_ = nullptr;
  for (const std::string& program : programs_) explored_.wrong += " | " + program;
  explored_.wrong += trace;
}

}  // namespace cairn::stepping
