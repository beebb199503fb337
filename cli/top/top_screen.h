// SPDX-License-Identifier: Apache-2.0
//
// The content of the screen of `cairn top`: a status document in, lines out.
//
// Thread safety: pure functions. Ownership: results are values. Units: columns and rows. Errors:
// what the document lacks is shown as 0 or left out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/top/rate_history.h"

namespace cairn::cli {

enum class ScreenStyle { kPlain, kHead, kTrouble };

struct ScreenLine {
  std::string text;
  ScreenStyle style = ScreenStyle::kPlain;
};

enum class FileOrder { kSize, kAge, kName };
enum class RunOrder { kUsed, kStored, kAge, kCommand };

struct ScreenShape {
  unsigned columns = 80;
  unsigned rows = 24;
  bool is_ascii = false;
  bool has_keys = true;  // names them in the last line
};

struct ScreenView {
  std::string node;
  std::string trouble;  // why the document is old; empty: it is not
  FileOrder order = FileOrder::kSize;
  bool is_reversed = false;
  RunOrder run_order = RunOrder::kUsed;
  bool runs_are_reversed = false;
};

// At most shape.rows lines of at most shape.columns.
std::vector<ScreenLine> screen_lines(const nlohmann::json& status, const RateHistory& rates,
                                     const ScreenView& view, const ScreenShape& shape);

// One line for each interval, and the line above them, with their ends.
std::string csv_head();
std::string csv_line(const nlohmann::json& status, const RateHistory& rates, double unix_seconds);

}  // namespace cairn::cli
