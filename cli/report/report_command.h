// SPDX-License-Identifier: Apache-2.0
//
// `cairn report`: the page, the data or the verdict of a run that is kept.
//
// Thread safety: one per process. Errors: throw Failure.
#pragma once

#include <functional>
#include <string>

#include "cli/arguments/arguments.h"

namespace cairn::cli {

struct ReportOptions {
  std::string run;  // empty: the last one
  std::string output;
  std::string pictures;  // a directory
  bool json = false;
  bool list = false;
  bool force = false;
};

// Draws the lines of picture_lines_of() into files of that directory. Given by the room that draws,
// which stands above this one.
using DrawCharts = std::function<void(const std::string& lines, const std::string& directory)>;

int command_report(const Arguments& arguments, const DrawCharts& draw);

}  // namespace cairn::cli
