// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/failure.h"

#include <fmt/format.h>

#include "cli/terminal/output.h"

namespace cairn::cli {

int exit_status_of(const std::function<int()>& command) {
  try {
    return command();
  } catch (const HelpShown&) {
    return kExitOk;
  } catch (const Failure& failure) {
    say_failure(failure.what(), failure.remedy());
    return failure.exit_status();
  } catch (const std::exception& error) {
    say_failure(fmt::format("unexpected error: {}", error.what()), "this is a defect of Cairn");
    return kExitInternal;
  }
}

}  // namespace cairn::cli
