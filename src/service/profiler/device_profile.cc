// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/device_profile.h"

#include <ctime>

namespace cairn::profiler {

std::string date_text(int64_t seconds) {
  const time_t time = seconds;
  tm parts{};
  char text[32] = "";
  if (::gmtime_r(&time, &parts) != nullptr) (void)std::strftime(text, sizeof text, "%F", &parts);
  return text;
}

}  // namespace cairn::profiler
