// SPDX-License-Identifier: Apache-2.0
// Names of files in texts that must be UTF-8 (JSON): a name is any bytes but NUL, so a byte that is
// not part of UTF-8 stands as NUL and two hexadecimal digits there. A text without such bytes stays
// as it is.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

// UTF-8 in any case.
std::string text_of_bytes(std::string_view bytes);
// The bytes again. NUL without two digits behind it stays, and is in no name.
std::string bytes_of_text(std::string_view text);

}  // namespace cairn
