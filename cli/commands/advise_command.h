// SPDX-License-Identifier: Apache-2.0
//
// `cairn advise`: whether Cairn helps a program, and with which configuration, from a trace or from
// one recorded run.
//
// Thread safety: one per process. Ownership: a node and a trace that it makes for a run are gone
// when it returns. Errors: Failure.
#pragma once

#include "cli/arguments/arguments.h"

namespace cairn::cli {

int command_advise(const Arguments& arguments);

}  // namespace cairn::cli
