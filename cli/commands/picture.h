// SPDX-License-Identifier: Apache-2.0
//
// Pictures, which programs of share/cairn draw with python3 and matplotlib.
//
// Thread safety: any thread. Ownership: nothing is kept. Errors: Failure.
#pragma once

#include <string>

namespace cairn::cli {

// `program`: its name below share/cairn; it reads `lines` and writes the file `picture`.
void draw_picture(const std::string& program, const std::string& lines, const std::string& picture);

}  // namespace cairn::cli
