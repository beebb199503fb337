// SPDX-License-Identifier: Apache-2.0
// What the node has learned from the programs' accesses, and what that was good for: fetches by
// predictor, the experts of replacement, how many events came.
//
// Thread safety: any thread.
#pragma once

#include "service/control/status_report.h"

namespace cairn::node {

// One entry per predictor that had something fetched.
Json fetches_json(const NodeContext& context);
// Where orders of reads are kept between nodes, and of how many files something was known from
// there; empty when nothing is kept.
Json remembered_json(const NodeContext& context);
// One entry per tier; empty when nothing is learned.
Json replacement_json(const NodeContext& context);
Json events_json(const NodeContext& context);

}  // namespace cairn::node
