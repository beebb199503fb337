// SPDX-License-Identifier: Apache-2.0
//
// The charts of a report, which its page and its pictures show.
//
// Thread safety: pure functions. Ownership: results are values. `run`: a document of the schema
// cairn-run-1.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/report/chart.h"

namespace cairn::cli {

enum class RunChart { kReads, kHits, kWrites, kFlushes, kLevels, kAhead, kMoves };

Chart chart_of(const nlohmann::json& run, RunChart which);

// Each chart that shows something, and the heat map, as share/cairn/report.py draws them: a line of
// JSON each, whose `id` names it as on the page.
struct PictureLines {
  std::vector<std::string> ids;
  std::string text;
};
PictureLines picture_lines_of(const nlohmann::json& run);

}  // namespace cairn::cli
