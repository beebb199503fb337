// SPDX-License-Identifier: Apache-2.0
//
// `cairn report`: the page, the data or the verdict of a run that is kept.
//
// Thread safety: one per process. Errors: throw Failure.
#pragma once

#include <string>

#include "cli/arguments/arguments.h"

namespace cairn::cli {

struct ReportOptions {
  std::string run;  // empty: the last one
  std::string output;
  bool json = false;
  bool list = false;
  bool force = false;
};

int command_report(const Arguments& arguments);

}  // namespace cairn::cli
