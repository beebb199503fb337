// SPDX-License-Identifier: Apache-2.0
#include "policy/models/queueing_station.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "policy/models/testing/queue_simulation.h"

namespace cairn {
namespace {

StationEstimate station_estimate(const StationLoad& load) {
  Result<StationEstimate> estimate = estimate_station(load);
  EXPECT_TRUE(estimate.is_ok()) << estimate.status().message();
  return estimate ? *estimate : StationEstimate{};
}

StationEquilibrium station_equilibrium(const StationLoad& load) {
  const StationEstimate estimate = station_estimate(load);
  EXPECT_TRUE(estimate.is_stable());
  return estimate.equilibrium.value_or(StationEquilibrium{});
}

// Service times have the mean 1.
StationLoad unit_station(double utilisation, std::uint32_t servers, double arrival_cv2 = 1,
                         double service_cv2 = 1) {
  return {utilisation * servers, 1, servers, arrival_cv2, service_cv2};
}

std::string station_text(const StationLoad& load) {
  return std::string(name_of(model_of(load))) + " k=" + std::to_string(load.servers) +
         " utilisation=" + std::to_string(load.offered_load() / load.servers) +
         " arrival_cv2=" + std::to_string(load.arrival_cv2) +
         " service_cv2=" + std::to_string(load.service_cv2);
}

TEST(QueueingStation, OneExponentialServerHasItsTextbookNumbers) {
  const StationEstimate estimate = station_estimate({.arrival_rate = 8, .service_seconds = 0.1});
  EXPECT_EQ(estimate.model, StationModel::kMM1);
  EXPECT_NEAR(estimate.utilisation, 0.8, 1e-15);
  ASSERT_TRUE(estimate.is_stable());
  EXPECT_NEAR(estimate.equilibrium->waiting_probability, 0.8, 1e-12);
  EXPECT_NEAR(estimate.equilibrium->waiting_count, 0.8 * 0.8 / 0.2, 1e-12);
  EXPECT_NEAR(estimate.equilibrium->present_count, 0.8 / 0.2, 1e-12);
  EXPECT_NEAR(estimate.equilibrium->waiting_seconds, 0.4, 1e-12);
  EXPECT_NEAR(estimate.equilibrium->response_seconds, 0.5, 1e-12);
}

// The sum of Erlang's formula as it stands, which powers and factorials limit to few servers.
double textbook_erlang_c(std::uint32_t servers, double offered_load) {
  long double term = 1;
  long double sum = 0;
  for (std::uint32_t busy = 0; busy < servers; ++busy) {
    sum += term;
    term *= static_cast<long double>(offered_load) / (busy + 1);
  }
  term /= 1 - static_cast<long double>(offered_load) / servers;
  return static_cast<double>(term / (sum + term));
}

TEST(QueueingStation, ErlangCIsItsSum) {
  EXPECT_EQ(erlang_c(1, 0), 0);
  EXPECT_NEAR(erlang_c(2, 1), 1.0 / 3, 1e-15);
  for (const std::uint32_t servers : {1U, 2U, 3U, 8U, 30U, 100U}) {
    for (const double utilisation : {0.01, 0.3, 0.9, 0.999}) {
      const double expected = textbook_erlang_c(servers, utilisation * servers);
      EXPECT_NEAR(erlang_c(servers, utilisation * servers), expected, 1e-12 * expected);
    }
  }
}

TEST(QueueingStation, HundredsOfServersDoNotOverflow) {
  double waiting_before = 1;
  for (const std::uint32_t servers : {200U, 500U, 1000U, 5000U, StationLoad::kServersMax}) {
    const StationEquilibrium found = station_equilibrium(unit_station(0.99, servers));
    EXPECT_GT(found.waiting_probability, 0);
    EXPECT_LT(found.waiting_probability, waiting_before) << "a large pool waits less";
    EXPECT_NEAR(found.present_count, found.waiting_count + 0.99 * servers, 1e-9 * servers);
    waiting_before = found.waiting_probability;
  }
  // Halfin and Whitt 1981: with k = r + sqrt(r) servers the probability tends to 0.2234.
  EXPECT_NEAR(erlang_c(10100, 10000), 0.2234, 0.003);
  EXPECT_EQ(station_equilibrium(unit_station(0.1, 5000)).waiting_probability, 0);
}

TEST(QueueingStation, PollaczekAndKhinchineAreExactForOneServer) {
  for (const double cv2 : {0.0, 0.25, 1.0, 4.0, 100.0}) {
    for (const double utilisation : {0.1, 0.5, 0.9, 0.99}) {
      const StationEquilibrium found = station_equilibrium(unit_station(utilisation, 1, 1, cv2));
      const double expected = utilisation * (1 + cv2) / (2 * (1 - utilisation));
      EXPECT_NEAR(found.waiting_seconds, expected, 1e-12 * expected);
      EXPECT_NEAR(found.waiting_probability, utilisation, 1e-12);
    }
  }
}

TEST(QueueingStation, GeneralFormulasHaveTheExactModelsAsLimits) {
  for (const std::uint32_t servers : {1U, 2U, 4U, 16U, 300U}) {
    for (const double utilisation : {0.2, 0.6, 0.95}) {
      const StationEquilibrium exact = station_equilibrium(unit_station(utilisation, servers));
      const double waits = erlang_c(servers, utilisation * servers);
      const double waiting = waits / (servers * (1 - utilisation));
      EXPECT_NEAR(exact.waiting_probability, waits, 1e-12);
      EXPECT_NEAR(exact.waiting_seconds, waiting, 1e-12);
      // Almost exponential times, by the formulas for general ones.
      for (const double near : {1 - 1e-9, 1 + 1e-9}) {
        const StationEquilibrium almost =
            station_equilibrium(unit_station(utilisation, servers, near, near));
        EXPECT_NEAR(almost.waiting_seconds, waiting, 1e-7 * (1 + waiting));
        EXPECT_NEAR(almost.waiting_probability, waits, 1e-7);
      }
    }
  }
}

TEST(QueueingStation, LittlesLawHoldsForAllModels) {
  for (const std::uint32_t servers : {1U, 3U, 40U}) {
    for (const double arrival_cv2 : {0.0, 0.5, 1.0, 3.0}) {
      for (const double service_cv2 : {0.0, 0.5, 1.0, 3.0}) {
        const StationLoad load{70.0 * servers, 0.01, servers, arrival_cv2, service_cv2};
        SCOPED_TRACE(station_text(load));
        const StationEquilibrium found = station_equilibrium(load);
        EXPECT_DOUBLE_EQ(found.waiting_count, load.arrival_rate * found.waiting_seconds);
        EXPECT_DOUBLE_EQ(found.present_count, load.arrival_rate * found.response_seconds);
        EXPECT_NEAR(found.present_count - found.waiting_count, load.offered_load(), 1e-9);
      }
    }
  }
}

TEST(QueueingStation, EqualTimesNeverWait) {
  for (const std::uint32_t servers : {1U, 4U}) {
    const StationEquilibrium found = station_equilibrium(unit_station(0.9, servers, 0, 0));
    EXPECT_EQ(found.waiting_seconds, 0);
  }
  EXPECT_NEAR(station_equilibrium(unit_station(0.9, 1, 0, 0)).waiting_probability, 0, 1e-12);
}

TEST(QueueingStation, AnIdleStationServesAtOnce) {
  const StationEstimate estimate = station_estimate({.arrival_rate = 0, .service_seconds = 0.5});
  EXPECT_EQ(estimate.utilisation, 0);
  ASSERT_TRUE(estimate.is_stable());
  EXPECT_EQ(estimate.equilibrium->present_count, 0);
  EXPECT_EQ(estimate.equilibrium->waiting_probability, 0);
  EXPECT_EQ(estimate.equilibrium->response_seconds, 0.5);
}

TEST(QueueingStation, AnOverloadedStationHasNoEquilibrium) {
  for (const double utilisation : {1.0, 1.0001, 3.0, 1e9}) {
    const StationEstimate estimate = station_estimate(unit_station(utilisation, 4, 2, 2));
    EXPECT_FALSE(estimate.is_stable());
    EXPECT_DOUBLE_EQ(estimate.utilisation, utilisation);
  }
  EXPECT_FALSE(station_estimate({.arrival_rate = 1e18, .service_seconds = 1e18}).is_stable());
  const StationEquilibrium almost = station_equilibrium(unit_station(1 - 1e-15, 1, 1e6, 1e6));
  EXPECT_TRUE(std::isfinite(almost.waiting_count));
}

TEST(QueueingStation, ExtremeLoadsStayFinite) {
  for (const double rate : {1e-18, 1e-3}) {
    for (const double seconds : {1e-18, 1e-3}) {
      for (const double cv2 : {0.0, 1e-300, 1.0, 1e6}) {
        for (const std::uint32_t servers : {1U, 2U, StationLoad::kServersMax}) {
          const StationEquilibrium found =
              station_equilibrium({rate, seconds, servers, cv2, 1e6 - cv2});
          EXPECT_TRUE(std::isfinite(found.response_seconds));
          EXPECT_GE(found.waiting_seconds, 0);
        }
      }
    }
  }
}

TEST(QueueingStation, BadNumbersAreNamed) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto expect_refused = [](const StationLoad& load, const std::string& part) {
    const Result<StationEstimate> estimate = estimate_station(load);
    ASSERT_FALSE(estimate.is_ok()) << part;
    EXPECT_EQ(estimate.status().code(), StatusCode::kInvalid);
    EXPECT_NE(estimate.status().message().find(part), std::string::npos)
        << estimate.status().message();
  };
  expect_refused({1, 1, 0}, "no server");
  expect_refused({1, 1, StationLoad::kServersMax + 1}, "servers");
  for (const double bad : {-1.0, kNan, kInfinity, -kInfinity, 1e19}) {
    expect_refused({bad, 1}, "arrival rate");
    expect_refused({1, bad}, "service time");
    expect_refused({1, 1, 1, bad, 1}, "variation of arrivals");
    expect_refused({1, 1, 1, 1, bad}, "variation of service times");
  }
  expect_refused({1, 0}, "service time");
}

TEST(QueueingStation, ModelsHaveKendallsNames) {
  EXPECT_EQ(name_of(model_of(unit_station(0.5, 1))), "M/M/1");
  EXPECT_EQ(name_of(model_of(unit_station(0.5, 2))), "M/M/k");
  EXPECT_EQ(name_of(model_of(unit_station(0.5, 1, 1, 2))), "M/G/1");
  EXPECT_EQ(name_of(model_of(unit_station(0.5, 2, 1, 2))), "M/G/k");
  EXPECT_EQ(name_of(model_of(unit_station(0.5, 1, 2))), "G/G/1");
  EXPECT_EQ(name_of(model_of(unit_station(0.5, 2, 2))), "G/G/k");
  EXPECT_TRUE(is_exact(StationModel::kMG1));
  EXPECT_FALSE(is_exact(StationModel::kMGk));
}

// A 95 % interval leaves the truth out in one run of 20. Too wide a one never would.
TEST(QueueSimulation, IntervalsCoverTheTruthAsOftenAsTheySay) {
  constexpr int kRuns = 200;
  const double truth = station_equilibrium(unit_station(0.7, 2)).waiting_seconds;
  int covered = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    const SimulatedStation run = simulate_station(unit_station(0.7, 2), {20'000, seed});
    covered += run.waiting_seconds.covers(truth) ? 1 : 0;
  }
  EXPECT_GE(covered, 0.90 * kRuns);
  EXPECT_LE(covered, 0.99 * kRuns);
}

TEST(QueueSimulation, TimesHaveTheirMoments) {
  for (const double cv2 : {0.0, 0.25, 0.5, 1.0, 2.0, 4.0}) {
    std::mt19937_64 random(3);
    const RandomTimes times(0.5, cv2);
    constexpr int kDraws = 400'000;
    double sum = 0;
    double squares = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      const double time = times.draw(random);
      sum += time;
      squares += time * time;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, 0.5, 0.005);
    EXPECT_NEAR(squares / kDraws / (mean * mean) - 1, cv2, 0.03 * cv2 + 1e-9) << cv2;
  }
}

void expect_covered(const SimulatedStation& run, const StationEstimate& estimate) {
  const StationEquilibrium& exact = *estimate.equilibrium;
  const auto expect = [](const SimulatedMean& mean, double value, const char* what) {
    EXPECT_TRUE(mean.covers(value))
        << what << ": " << value << " is not " << mean.mean << " +- " << mean.half_width;
  };
  expect(run.utilisation, estimate.utilisation, "utilisation");
  expect(run.waiting_probability, exact.waiting_probability, "probability of waiting");
  expect(run.waiting_count, exact.waiting_count, "length of the line");
  expect(run.waiting_seconds, exact.waiting_seconds, "waiting time");
  expect(run.response_seconds, exact.response_seconds, "response time");
}

TEST(QueueSimulation, ExactModelsLieInTheIntervals) {
  struct Case {
    StationLoad load;
    std::uint64_t seed;
  };
  // 60 measures: about 3 would be outside by chance. With seed 1 it is one, the last case's
  // utilisation; seed 2 has it inside.
  // A run in which chance leaves a measure outside would need another seed.
  const std::vector<Case> cases = {
      {unit_station(0.5, 1), 1},        {unit_station(0.9, 1), 2},
      {unit_station(0.5, 2), 3},        {unit_station(0.9, 2), 4},
      {unit_station(0.7, 4), 5},        {unit_station(0.9, 4), 6},
      {unit_station(0.9, 16), 7},       {unit_station(0.95, 100), 8},
      {unit_station(0.8, 1, 1, 0), 9},  {unit_station(0.9, 1, 1, 0.25), 10},
      {unit_station(0.8, 1, 1, 4), 11}, {{300, 0.002, 1, 1, 2}, 12},
  };
  for (const auto& [load, seed] : cases) {
    SCOPED_TRACE(station_text(load) + ", seed " + std::to_string(seed));
    const StationEstimate estimate = station_estimate(load);
    ASSERT_TRUE(is_exact(estimate.model));
    expect_covered(simulate_station(load, {600'000, seed}), estimate);
  }
}

// One line of the table in docs/models.md.
void print_errors(const StationLoad& load, const SimulatedStation& run,
                  const StationEquilibrium& model) {
  const double waiting = run.waiting_seconds.mean;
  std::printf("| %u | %.1f | %.2f | %.2f | %+.1f %% | %+.1f %% | %+.3f |\n", load.servers,
              load.offered_load() / load.servers, load.arrival_cv2, load.service_cv2,
              100 * (model.response_seconds / run.response_seconds.mean - 1),
              100 * (model.waiting_seconds / waiting - 1),
              model.waiting_probability - run.waiting_probability.mean);
}

// Runs are longer where times vary and stations are full: their means spread more.
void measure_approximations(double requests, bool is_printed) {
  for (const std::uint32_t servers : {1U, 2U, 4U, 16U}) {
    for (const double utilisation : {0.3, 0.5, 0.7, 0.9}) {
      for (const double arrival_cv2 : {0.25, 1.0, 4.0}) {
        for (const double service_cv2 : {0.25, 1.0, 4.0}) {
          const StationLoad load = unit_station(utilisation, servers, arrival_cv2, service_cv2);
          SCOPED_TRACE(station_text(load) + ", seed 11");
          const double idle = 1 - utilisation;
          const double length = requests * (arrival_cv2 + service_cv2) / (idle * idle);
          const SimulatedStation run = simulate_station(
              load, {static_cast<std::uint64_t>(std::max(length, 100.0 * requests)), 11});
          const StationEquilibrium model = station_equilibrium(load);
          const double response = run.response_seconds.mean;
          EXPECT_NEAR(model.response_seconds, response, 0.1 * response);
          EXPECT_NEAR(model.waiting_probability, run.waiting_probability.mean, 0.11);
          // With Poisson arrivals the waiting time, too, if more than one in 20 waits.
          if (arrival_cv2 == 1 && run.waiting_probability.mean > 0.05) {
            EXPECT_NEAR(model.waiting_seconds, run.waiting_seconds.mean,
                        0.1 * run.waiting_seconds.mean + run.waiting_seconds.half_width);
          }
          if (is_printed) print_errors(load, run, model);
        }
      }
    }
  }
}

TEST(QueueSimulation, ApproximationsAreWithinTenPercent) { measure_approximations(1000, false); }

// Takes a quarter of a minute: --gtest_also_run_disabled_tests --gtest_filter='*PrintsTheTable*'.
TEST(QueueSimulation, DISABLED_PrintsTheTable) { measure_approximations(8'000, true); }

}  // namespace
}  // namespace cairn
