// SPDX-License-Identifier: Apache-2.0
//
// The list of a rescue directory (base/rescue_list.h) as `cairn rescue` needs it: by file.
//
// Thread safety: pure functions. Ownership: results are values. Failures throw cli::Failure.
#pragma once

#include <ctime>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/rescue_list.h"

namespace cairn::cli {

// The saved ranges of one file; each ends inside of what a file can have.
struct RescuedFile {
  RescueEntry about;
  std::vector<RescueEntry> ranges;  // at least one
  uint64_t bytes = 0;
  bool is_begun = false;  // a call before this one may have written a part
};

struct LostFile {
  std::string why;
  uint64_t bytes = 0;  // none where only its size and time are lost
};

struct RescuedFiles {
  std::map<std::string, RescuedFile> saved;  // by the name in the directory
  std::map<std::string, LostFile> lost;      // by name_of() the file
  size_t whole_bytes = 0;  // of the text; behind them is a line that was cut off and means nothing
};

// `name` is that of the list, for messages. Errors: the text is no list of this version; it has a
// line that is none.
RescuedFiles parse_rescue_list(const std::string& name, std::string_view text);

// What the file is called in messages.
std::string name_of(const RescueEntry& about);

timespec time_of(int64_t nanoseconds);

}  // namespace cairn::cli
