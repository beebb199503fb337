// SPDX-License-Identifier: Apache-2.0
#include "service/replay/outcome_text.h"

#include <fmt/format.h>

#include <cstring>

#include "base/printable_text.h"

namespace cairn::durable {
namespace {

std::string damaged_text(const RecoveredFile& file) {
  std::string text;
  for (const auto& [begin, end] : file.damaged) {
    text += fmt::format("\n  damaged in the log and lost: bytes {} to {}", begin, end - 1);
  }
  return text;
}

}  // namespace

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kRestored:
      return "restored";
    case Outcome::kMadeAnew:
      return "made anew";
    case Outcome::kBeside:
      return "beside";
    case Outcome::kRescued:
      return "rescued";
    case Outcome::kKept:
      return "kept";
  }
  return "?";
}

std::string text_of(const RecoveredFile& file, bool is_foretold) {
  const std::string path = printable(file.path);
  const std::string written = printable(file.written);
  const std::string why = file.error == 0 ? "" : fmt::format(" ({})", std::strerror(file.error));
  std::string text;
  switch (file.outcome) {
    case Outcome::kRestored:
      if (file.written != file.path && !file.written.empty()) {
        text = fmt::format("{}: is {} now, and recovered there", path, written);
      }
      break;
    case Outcome::kMadeAnew:
      text = is_foretold ? fmt::format("{}: would be made anew", path)
                         : fmt::format("{}: was not there; made anew{}{}", path,
                                       file.written == file.path ? "" : " as " + written,
                                       file.is_private ? ", readable by you alone" : "");
      break;
    case Outcome::kBeside:
      text = is_foretold ? fmt::format("{}: was changed by somebody else since", path)
                         : fmt::format(
                               "{}: was changed by somebody else since and stays as it is; "
                               "recovered as {}{}",
                               path, written,
                               file.has_foreign_parts
                                   ? ", whose parts that were stored already are from the "
                                     "changed file"
                                   : "");
      break;
    case Outcome::kRescued:
      text = is_foretold ? fmt::format("{}: has no place{}; would be rescued", path, why)
                         : fmt::format("{}: has no place{}; saved as {}", path, why, written);
      break;
    case Outcome::kKept:
      text = fmt::format("{}: not recovered{}; it stays in the durable tier", path, why);
      break;
  }
  if (!file.damaged.empty() && text.empty()) text = path + ":";
  return text + damaged_text(file);
}

}  // namespace cairn::durable
