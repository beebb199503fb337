// SPDX-License-Identifier: Apache-2.0
// The JSON values of control.sock.
//
// Thread safety: a type.
#pragma once

#include <nlohmann/json.hpp>

namespace cairn::node {

using Json = nlohmann::json;

}  // namespace cairn::node
