// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "base/system_call.h"

namespace cairn {
namespace {

void abort_on_failure(const char* expression, const char* file, int line) {
  char text[512];
  const int length =
      std::snprintf(text, sizeof text, "cairn: check failed: %s (%s:%d)\n", expression, file, line);
  if (length > 0) (void)sys::write(2, text, static_cast<std::size_t>(length));
  std::abort();
}

std::atomic<CheckHandler> g_handler{&abort_on_failure};

}  // namespace

CheckHandler set_check_handler(CheckHandler handler) { return g_handler.exchange(handler); }

void check_failed(const char* expression, const char* file, int line) {
  g_handler.load()(expression, file, line);
}

}  // namespace cairn
