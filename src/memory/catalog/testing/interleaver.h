// SPDX-License-Identifier: Apache-2.0
// Runs tasks in every order that their steps allow: a deterministic scheduler over production code,
// which gives way at the points that memory/arena/step_pause.h names.
//
// Each task has a stack of its own and one runs at a time. An order is a list of choices; the next
// order differs in the last choice that had another answer, until there is none (depth first). A
// task that waits for a lock is not chosen while somebody has it. Orders with more than
// `switches_max` switches away from a task that could go on are left out: Musuvathi and Qadeer,
// "Iterative context bounding for systematic testing", PLDI 2007, found nearly all races with two.
//
// Thread safety: one thread. Ownership: owns the stacks.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace cairn {

class Interleaver {
 public:
  using Task = std::function<void()>;
  static constexpr unsigned kUnbounded = ~0U;

  // Calls prepare(), which returns the tasks, and runs them to their end; then check(). Once for
  // every order. Returns how many there were.
  template <typename Prepare, typename Check>
  std::size_t run_all(Prepare&& prepare, Check&& check, unsigned switches_max = kUnbounded) {
    switches_max_ = switches_max;
    choices_.clear();
    std::size_t orders = 0;
    do {
      run_once(prepare());
      ++orders;
      if (!check()) break;
    } while (advance());
    return orders;
  }
  // Which task made each step of the order that ran last, for a message.
  std::vector<unsigned> order() const {
    std::vector<unsigned> order;
    for (const Choice& choice : choices_) order.push_back(choice.tasks[choice.taken]);
    return order;
  }

  // Called after each step of any task.
  void watch(std::function<void()> after_step) { after_step_ = std::move(after_step); }
  // Whether every task came to its end; else they waited for each other.
  bool are_all_done() const {
    for (const auto& fiber : fibers_) {
      if (!fiber->is_done) return false;
    }
    return true;
  }

  // From within a task: another one may go on here, or must until `is_open`.
  void give_way(std::function<bool()> is_open = {}) {
    Fiber& fiber = *fibers_[current_];
    fiber.is_open = std::move(is_open);
    swapcontext(&fiber.context, &scheduler_);
  }

 private:
  static constexpr std::size_t kStackBytes = 128 << 10;
  struct Fiber {
    ucontext_t context{};
    std::unique_ptr<char[]> stack{new char[kStackBytes]};
    Task task;
    std::function<bool()> is_open;
    bool is_done = false;
  };
  struct Choice {
    std::vector<unsigned> tasks;  // those that could go on
    std::size_t taken = 0;
  };

  void run_once(std::vector<Task> tasks) {
    while (fibers_.size() < tasks.size()) fibers_.push_back(std::make_unique<Fiber>());
    fibers_.resize(tasks.size());
    for (std::size_t at = 0; at < tasks.size(); ++at) start(*fibers_[at], std::move(tasks[at]));
    std::size_t depth = 0;
    unsigned switches = 0;
    current_ = static_cast<unsigned>(fibers_.size());  // nobody
    for (;; ++depth) {
      if (depth == choices_.size()) {
        Choice choice{ready(switches < switches_max_)};
        if (choice.tasks.empty()) break;
        choices_.push_back(std::move(choice));
      }
      const Choice& choice = choices_[depth];
      const unsigned next = choice.tasks[choice.taken];
      if (next != current_ && can_go_on(current_)) ++switches;
      current_ = next;
      swapcontext(&scheduler_, &fibers_[next]->context);
      if (after_step_) after_step_();
    }
  }

  bool can_go_on(unsigned task) const {
    if (task >= fibers_.size() || fibers_[task]->is_done) return false;
    return !fibers_[task]->is_open || fibers_[task]->is_open();
  }
  // The one that ran last comes first, and alone when no more switches are allowed.
  std::vector<unsigned> ready(bool may_switch) const {
    std::vector<unsigned> tasks;
    if (can_go_on(current_)) tasks.push_back(current_);
    if (!tasks.empty() && !may_switch) return tasks;
    for (unsigned task = 0; task < fibers_.size(); ++task) {
      if (task != current_ && can_go_on(task)) tasks.push_back(task);
    }
    return tasks;
  }
  bool advance() {
    while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().tasks.size())
      choices_.pop_back();
    if (choices_.empty()) return false;
    ++choices_.back().taken;
    return true;
  }

  void start(Fiber& fiber, Task task) {
    fiber.task = std::move(task);
    fiber.is_open = {};
    fiber.is_done = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &scheduler_;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(&Interleaver::enter), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  }
  static void enter(unsigned high, unsigned low) {
    auto* self = reinterpret_cast<Interleaver*>(static_cast<std::uintptr_t>(high) << 32 | low);
    Fiber& fiber = *self->fibers_[self->current_];
    fiber.task();
    fiber.is_done = true;
  }

  ucontext_t scheduler_{};
  std::function<void()> after_step_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Choice> choices_;
  unsigned current_ = 0;
  unsigned switches_max_ = kUnbounded;
};

}  // namespace cairn
