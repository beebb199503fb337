// SPDX-License-Identifier: Apache-2.0
// Runs the actors of a scene in every order of their steps, and lets them die between any two: a
// deterministic scheduler over the shipped protocols of the arena.
//
// A step is one operation on an atomic (stepped_atomic.h). Each actor has a stack of its own, one
// runs at a time, and which comes next is a list of moves. The search is depth first. A state is
// what lies in the scene's memory and what each actor has learned since its operation began, and
// nothing else decides how an actor goes on. So the search goes on from each state once, and leaves
// no order out: `orders` counts them all. (States are compared by a sum of 64 bits. The search of a
// compiled program is P. Godefroid's, "Model checking for programming languages using VeriSoft",
// POPL 1997.)
//
// An actor that waits is let on when what it waits for has changed, when somebody has died, and
// when nobody else can go on: the time is then up. Everybody knows of a death at once; one that
// nobody has noticed yet is for all others an actor that makes no step.
//
// Thread safety: one explorer at a time. Ownership: borrows the scene; owns the stacks. Needs
// x86-64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random_source.h"

namespace cairn::stepping {

// A protocol at work. All that its operations change lies in its memory.
class Scene {
 public:
  virtual ~Scene() = default;
  // Plain bytes, which are copied and compared.
  virtual std::span<std::byte> memory() = 0;
  // What of the memory is one actor's alone.
  virtual std::span<const std::byte> own(unsigned) { return {}; }
  // Parts of the memory that steer nobody: an access to them is no step.
  virtual bool is_aside(const void*) const { return false; }
  // What nobody else can change at this moment, because the actor holds a lock: a look at it is no
  // step, as it could be made right after the step before it.
  virtual bool is_held(unsigned, const void*) const { return false; }
  // One operation of an actor.
  virtual void act(unsigned actor, char operation) = 0;
  // The actor has come to the end of its program.
  virtual void finish(unsigned) {}
  // The actor will make no step more: from here on it counts as dead.
  virtual void bury(unsigned actor) = 0;
  // Calls require() for all that holds after every step.
  virtual void check() {}
  // After the last step: does what the service does about the dead, and looks whether all is well.
  virtual void settle() = 0;
};

struct Explored {
  std::uint64_t states = 0;
  std::uint64_t ends = 0;  // states in which nobody can go on
  long double orders = 0;  // different lists of moves
  std::string wrong;       // what was not as it should be, and the order that led there
};

// A part of the test's expectations, from within operations and checks. An actor that fails it is
// not let on.
void require(bool is_so, const char* what);

class Explorer {
 public:
  struct Options {
    unsigned deaths_max = 1;
  };
  // `programs`: the operations of each actor.
  Explorer(Scene& scene, std::vector<std::string> programs, Options options);
  ~Explorer();
  Explorer(const Explorer&) = delete;
  Explorer& operator=(const Explorer&) = delete;

  // Every order there is.
  Explored explore_all();
  // So many orders by chance.
  Explored explore_some(std::uint64_t count, std::uint64_t seed);

 private:
  friend bool step(const void*, Access, std::uint64_t);
  friend void learn(Access, std::uint64_t);
  friend void forget_all_but(std::initializer_list<std::uint64_t>);
  friend void relax();
  friend bool sleep_on(const void*, std::uint32_t, std::uint32_t);
  friend void require(bool, const char*);

  enum class Life : std::uint8_t { kRuns, kWaits, kDone, kDead };
  // How far an actor is.
  struct Progress {
    std::byte* stack_pointer = nullptr;
    Life life = Life::kDone;
    unsigned operation = 0;
    std::uint64_t learned = 0;
    // The last word that it looked at, or that it waits for.
    const void* seen_address = nullptr;
    std::uint64_t seen_bits = 0;
    bool is_hurrying = false;  // its wait has ended in vain: it looks at once what else it can do
    bool may_pass = false;     // the next step was asked for already
    unsigned deaths_seen = 0;
    unsigned timeouts = 0;
  };
  struct Fiber : Progress {
    std::unique_ptr<std::byte[]> stack;
  };
  struct Move {
    std::uint8_t actor = 0;
    bool dies = false;
  };
  // What a state is made of, to go on from it again: the memory, and the stacks where they lie.
  struct Snapshot {
    std::vector<std::byte> bytes;
    std::vector<Progress> progress;
    unsigned deaths = 0;
  };
  struct Node {
    std::uint64_t state = 0;
    Snapshot snapshot;
    std::vector<Move> moves;
    std::size_t taken = 0;
    long double orders = 0;
  };

  void restart();
  Snapshot take_snapshot() const;
  void go_back_to(const Snapshot& snapshot);
  void start(Fiber& fiber);
  static void enter();
  void run_program();
  void perform(Move move);
  void give_way();
  void wait();
  std::vector<Move> moves() const;
  bool is_let_on(const Fiber& fiber) const;
  bool has_changed(const Fiber& fiber) const;
  std::uint64_t state() const;
  long double go_down(std::vector<Node>& path);
  void end_order();
  void fail(const char* what);
  void trace(unsigned actor, Access access, std::size_t offset, std::uint64_t bits);
  void describe(const std::vector<Move>& order);
  bool has_failed() const { return !explored_.wrong.empty(); }
  static void on_failed_check(const char* expression, const char* file, int line);

  Scene& scene_;
  std::vector<std::string> programs_;
  Options options_;
  std::vector<std::byte> first_memory_;
  std::vector<bool> is_aside_;
  std::vector<Fiber> fibers_;
  std::byte* scheduler_ = nullptr;
  int current_ = -1;
  unsigned deaths_ = 0;
  std::unordered_map<std::uint64_t, long double> known_;
  Explored explored_;
  std::string* trace_ = nullptr;
};

}  // namespace cairn::stepping
