// SPDX-License-Identifier: Apache-2.0
//
// The file that a page goes to. Nothing is overwritten that is not a page of ours, unless the user
// says so.
//
// Thread safety: files. Errors: throw Failure, naming `option` and the file.
#pragma once

#include <string>

namespace cairn::cli {

// Before anything is started: whether the page can be written there.
void check_report_place(const std::string& option, const std::string& path, bool force);

// Replaces the file as a whole. A link stays, and the file that it names is written, also where
// there is none yet. `remedy`: what to do when it cannot be written.
void write_report_file(const std::string& option, const std::string& path, const std::string& text,
                       const std::string& remedy);

}  // namespace cairn::cli
