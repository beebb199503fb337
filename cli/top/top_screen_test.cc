// SPDX-License-Identifier: Apache-2.0
#include "cli/top/top_screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/top/screen_text.h"

namespace cairn::cli {
namespace {

using nlohmann::json;

constexpr unsigned kMiB = 1U << 20U;

json busy_node(unsigned files) {
  json status = {
      {"node", "job"},
      {"service_pid", 7},
      {"uptime_seconds", 10},
      {"tiers",
       {{{"name", "ram"},
         {"capacity_bytes", 100 * kMiB},
         {"used_bytes", 50 * kMiB},
         {"dirty_bytes", 10 * kMiB},
         {"state", "in service"}}}},
      {"backing", {{"dirty_bytes", 10 * kMiB}}},
      {"counters", {{"read_bytes", 1000}, {"write_bytes", 2000}, {"flushed_bytes", 0}}},
      {"runs", {{{"run", "42"}, {"command_line", {"sh", "-c", "x\x1b[2J"}}, {"seconds", 3}}}},
      {"clients", json::array()},
      {"unstored", json::array()},
      {"unstored_total", files}};
  for (unsigned file = 0; file < files; ++file) {
    status["unstored"].push_back({{"path", "/data/" + std::to_string(1000 + file)},
                                  {"dirty_bytes", (file + 1) * 1024},
                                  {"since_seconds", file == 3 ? 500 : 1}});
  }
  return status;
}

std::string text_of(const json& status, const ScreenView& view = {},
                    const ScreenShape& shape = {}) {
  std::string text;
  const auto lines = screen_lines(status, RateHistory(), view, shape);
  EXPECT_LE(lines.size(), shape.rows);
  for (const ScreenLine& line : lines) {
    EXPECT_LE(columns_of(line.text), shape.columns) << line.text;
    text += line.text + "\n";
  }
  return text;
}

TEST(TopScreen, HasAllPartsAt80x24) {
  const std::string text = text_of(busy_node(5));
  for (const char* part : {"ram", "50 MiB of 100 MiB, dirty 10 MiB", "###", "===", "...", "read",
                           "write", "flush", "fetch", "flusher  5 files, 10 MiB to store", "RUNS 1",
                           "FILES NOT STORED: 5, by size", "/data/1004", "q quit"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(TopScreen, FitsEveryTerminal) {
  for (unsigned columns : {1U, 2U, 10U, 20U, 40U, 80U, 300U}) {
    for (unsigned rows : {1U, 2U, 5U, 24U, 100U}) {
      ScreenShape shape;
      shape.columns = columns;
      shape.rows = rows;
      text_of(busy_node(1000), {"job", "NO ANSWER", FileOrder::kAge, true}, shape);
      text_of(json(), {}, shape);
    }
  }
}

TEST(TopScreen, FilesAreSorted) {
  const auto first = [](const ScreenView& view) {
    const std::string text = text_of(busy_node(1000), view);
    return text.substr(text.find("/data/"), 10);
  };
  ScreenView view;
  EXPECT_EQ(first(view), "/data/1999");
  view.order = FileOrder::kAge;
  EXPECT_EQ(first(view), "/data/1003");
  view.order = FileOrder::kName;
  EXPECT_EQ(first(view), "/data/1000");
  view.is_reversed = true;
  EXPECT_EQ(first(view), "/data/1999");
}

TEST(TopScreen, RunsAreSortedByEachColumn) {
  json status = busy_node(1);
  const auto run = [](const char* name, unsigned used, unsigned stored, unsigned age) {
    return json{{"run", name},
                {"command_line", {name}},
                {"tiers", {{{"used_bytes", used * kMiB}}}},
                {"stored_bytes", stored * kMiB},
                {"seconds", age}};
  };
  status["runs"] = {run("b", 9, 1, 1), run("c", 1, 9, 2), run("a", 2, 2, 9), run("d", 3, 3, 3)};
  const auto first = [&status](RunOrder order, bool is_reversed) {
    ScreenView view;
    view.run_order = order;
    view.runs_are_reversed = is_reversed;
    const std::string text = text_of(status, view);
    return text.substr(text.find('\n', text.find("RUNS 4")) + 1, 1);
  };
  EXPECT_EQ(first(RunOrder::kUsed, false), "b");
  EXPECT_EQ(first(RunOrder::kStored, false), "c");
  EXPECT_EQ(first(RunOrder::kAge, false), "a");
  EXPECT_EQ(first(RunOrder::kCommand, false), "a");
  EXPECT_EQ(first(RunOrder::kCommand, true), "d");
  EXPECT_EQ(first(RunOrder::kUsed, true), "c");
}

TEST(TopScreen, NamesCannotDriveTheTerminal) {
  json status = busy_node(1);
  status["unstored"][0]["path"] =
      "/a\x1b]0;gone\x07\n\xC2\x9B"
      "2J\xE2\x80\xAE/\xE6\xBC\xA2";
  for (const char letter : text_of(status))
    EXPECT_TRUE(letter == '\n' || static_cast<unsigned char>(letter) >= 0x20);
  EXPECT_NE(text_of(status).find("/a?]0;gone???2J?/\xE6\xBC\xA2"), std::string::npos);
  ScreenShape ascii;
  ascii.is_ascii = true;
  for (const char letter : text_of(status, {}, ascii))
    EXPECT_LT(static_cast<unsigned char>(letter), 0x7F);
}

TEST(TopScreen, ALongNameLosesItsBeginning) {
  json status = busy_node(1);
  status["unstored"][0]["path"] = "/" + std::string(3000, 'x') + "/end.h5";
  EXPECT_NE(text_of(status).find("~xx"), std::string::npos);
  EXPECT_NE(text_of(status).find("x/end.h5\n"), std::string::npos);
}

TEST(TopScreen, SaysThatNobodyAnswers) {
  ScreenView view;
  view.trouble = "NO ANSWER from node job";
  EXPECT_NE(text_of(busy_node(1), view).find("NO ANSWER"), std::string::npos);
}

TEST(ScreenText, WidthsAndBadBytes) {
  EXPECT_EQ(fit("\xFF\xC0\x80z", 10, false), "???z");
  EXPECT_EQ(columns_of("\xE6\xBC\xA2"), 2U);
  EXPECT_EQ(fit("\xE6\xBC\xA2\xE6\xBC\xA2", 3, false), "\xE6\xBC\xA2~");
  EXPECT_EQ(padded("ab", 4, false), "ab  ");
  EXPECT_EQ(bar(1, 50, 100, 10), "#====.....");
  EXPECT_EQ(bar(5, 500, 100, 4), "#===");
  EXPECT_EQ(bar(0, 0, 0, 3), "...");
  EXPECT_EQ(sparkline({9, 0, 1, 8}, 3, true), " .#");
}

TEST(TopCsv, HasAFieldForEachName) {
  const auto commas = [](const std::string& line) {
    return std::count(line.begin(), line.end(), ',');
  };
  const std::string line = csv_line(busy_node(2), RateHistory(), 1.5);
  EXPECT_EQ(commas(line), commas(csv_head()));
  EXPECT_EQ(line, "1.500,job,104857600,52428800,10485760,0,0,0,0,1000,2000,0,0,1,0,2,0\n");
}

RateCounters counters(std::uint64_t read, double uptime, std::uint64_t service = 1) {
  RateCounters result;
  result.bytes[0] = read;
  result.uptime_seconds = uptime;
  result.service = service;
  return result;
}

TEST(RateHistory, IsTheDifferenceByTheClockOfTheService) {
  RateHistory rates;
  rates.add(counters(1000, 10));
  EXPECT_EQ(rates.last(Rate::kRead), 0);
  rates.add(counters(5000, 12));
  EXPECT_EQ(rates.last(Rate::kRead), 2000);
}

TEST(RateHistory, ARestartIsNoRate) {
  RateHistory rates;
  rates.add(counters(1000, 10));
  rates.add(counters(90'000'000, 10.001, 2));  // another process, its counters are elsewhere
  EXPECT_EQ(rates.last(Rate::kRead), 0);
  rates.add(counters(10, 0.5, 2));  // its counters and clock begin again
  EXPECT_EQ(rates.last(Rate::kRead), 0);
  rates.add(counters(5, 1.5, 2));  // a client's counters have gone
  EXPECT_EQ(rates.last(Rate::kRead), 0);
  rates.add(counters(105, 2.5, 2));
  EXPECT_EQ(rates.last(Rate::kRead), 100);
  rates.note_gap();
  rates.add(counters(1'000'000, 3.5, 2));
  EXPECT_EQ(rates.last(Rate::kRead), 100) << "nothing is added after a gap";
  for (unsigned more = 0; more < 1000; ++more) rates.add(counters(1'000'000, 4.5 + more, 2));
  EXPECT_EQ(rates.of(Rate::kRead).size(), RateHistory::kKept);
}

}  // namespace
}  // namespace cairn::cli
