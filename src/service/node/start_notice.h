// SPDX-License-Identifier: Apache-2.0
// What a service tells its launcher before it is ready: lines for the user, through the pipe that
// ends with "ready" or with the reason why it cannot start (NodeConfig::ready_fd).
//
// Thread safety: a constant.
#pragma once

#include <string_view>

namespace cairn::node {

// In front of each notice; another line follows it.
inline constexpr std::string_view kNoticeMark = "notice ";

}  // namespace cairn::node
