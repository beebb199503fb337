// SPDX-License-Identifier: Apache-2.0
// The fields of a request on control.sock.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "service/control/json.h"

namespace cairn::node {

// The text of a field; an integer as its digits; empty where the request has neither.
std::string text_of(const Json& request, const char* field);
bool flag_of(const Json& request, const char* field, bool otherwise);

}  // namespace cairn::node
