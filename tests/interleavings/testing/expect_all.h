// SPDX-License-Identifier: Apache-2.0
// What the tests of this suite have in common: every pair of programs in every order, and longer
// programs of more actors by chance. How many orders that were is printed; CAIRN_SEED repeats a run
// by chance, CAIRN_ORDERS makes it longer.
//
// Thread safety: one thread.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "interleavings/testing/explorer.h"
#include "memory/arena/owner.h"

namespace cairn::stepping {

// The slot of each actor's owner: slot 1 is the service's, which lives, or is actor 0 where a scene
// says so.
constexpr std::uint16_t owner_slot(unsigned actor) { return static_cast<std::uint16_t>(actor + 2); }

struct Generations {
  static constexpr std::uint32_t kOwners = 8;
  std::array<std::atomic<std::uint32_t>, kOwners> words{};
  OwnerTable table() { return OwnerTable(words.data(), kOwners); }
};

template <typename T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span<T, 1>(&value, 1));
}

inline std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

inline void add(Explored* sum, const Explored& more) {
  sum->states += more.states;
  sum->ends += more.ends;
  sum->orders += more.orders;
}
inline void print(const char* what, const Explored& sum) {
  std::printf("%s: %.3Lg orders of steps, %llu states, %llu different ends\n", what, sum.orders,
              static_cast<unsigned long long>(sum.states),
              static_cast<unsigned long long>(sum.ends));
}

// All programs of so many operations.
inline std::vector<std::string> all_programs(const std::string& operations, unsigned length) {
  std::vector<std::string> programs{""};
  for (unsigned at = 0; at < length; ++at) {
    std::vector<std::string> longer;
    for (const std::string& program : programs) {
      for (const char operation : operations) longer.push_back(program + operation);
    }
    programs = std::move(longer);
  }
  return programs;
}

template <typename SceneType>
void explore(std::vector<std::string> programs, Explorer::Options options, Explored* sum) {
  SceneType scene;
  Explorer explorer(scene, std::move(programs), options);
  const Explored explored = explorer.explore_all();
  if (!explored.wrong.empty()) GTEST_FAIL() << explored.wrong;
  add(sum, explored);
}

// Every pair of these programs.
template <typename SceneType>
void expect_all(const std::vector<std::string>& programs, Explorer::Options options) {
  Explored sum;
  for (std::size_t first = 0; first < programs.size(); ++first) {
    for (std::size_t second = first; second < programs.size(); ++second) {
      explore<SceneType>({programs[first], programs[second]}, options, &sum);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  print("all orders", sum);
}

// Each of these groups of programs.
template <typename SceneType>
void expect_each(const std::vector<std::vector<std::string>>& groups, Explorer::Options options) {
  Explored sum;
  for (const std::vector<std::string>& programs : groups) {
    explore<SceneType>(programs, options, &sum);
    if (::testing::Test::HasFatalFailure()) return;
  }
  print("all orders", sum);
}

// Programs of `length` operations, for each actor out of its own.
template <typename SceneType>
void expect_some(const std::vector<std::string>& operations, unsigned length, std::uint64_t orders,
                 unsigned deaths_max = 2) {
  constexpr std::uint64_t kOrdersOfOne = 100;
  const std::uint64_t seed = setting("CAIRN_SEED", 1);
  orders = setting("CAIRN_ORDERS", orders);
  std::printf("CAIRN_SEED=%llu\n", static_cast<unsigned long long>(seed));
  RandomSource random(seed);
  Explored sum;
  for (std::uint64_t done = 0; done < orders; done += kOrdersOfOne) {
    std::vector<std::string> programs(operations.size());
    for (std::size_t actor = 0; actor < operations.size(); ++actor) {
      const std::string& known = operations[actor];
      while (programs[actor].size() < length)
        programs[actor] += known[random.below(static_cast<std::uint32_t>(known.size()))];
    }
    SceneType scene;
    Explorer explorer(scene, std::move(programs), {.deaths_max = deaths_max});
    const Explored explored = explorer.explore_some(kOrdersOfOne, random.next());
    if (!explored.wrong.empty()) GTEST_FAIL() << explored.wrong;
    add(&sum, explored);
  }
  print("orders by chance", sum);
}

}  // namespace cairn::stepping
