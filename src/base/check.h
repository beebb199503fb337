// SPDX-License-Identifier: Apache-2.0
// CHECK (always on, control plane) and DCHECK (hot path, on in debug and sanitizer builds).
//
// A failed check calls the handler of the process: the service aborts; inside a host application
// the preload installs a handler that latches pass-through instead of killing somebody's job (see
// frontends/client/session.h).
#pragma once

namespace cairn {

using CheckHandler = void (*)(const char* expression, const char* file, int line);

// Installs `handler`; returns the one before. The default writes one line to stderr and aborts.
CheckHandler set_check_handler(CheckHandler handler);

[[gnu::cold]] void check_failed(const char* expression, const char* file, int line);

#ifdef CAIRN_FUZZ
// The fuzz targets run what users run, in one build with tests that have DCHECK on.
inline bool g_dchecks_are_on = true;
#endif

}  // namespace cairn

#define CAIRN_CHECK(expression)                               \
  do {                                                        \
    if (__builtin_expect(!(expression), 0)) {                 \
      ::cairn::check_failed(#expression, __FILE__, __LINE__); \
    }                                                         \
  } while (false)

#ifdef NDEBUG
#define CAIRN_DCHECK(expression) \
  do {                           \
    (void)sizeof(expression);    \
  } while (false)
#elif defined(CAIRN_FUZZ)
#define CAIRN_DCHECK(expression) CAIRN_CHECK(!::cairn::g_dchecks_are_on || (expression))
#else
#define CAIRN_DCHECK(expression) CAIRN_CHECK(expression)
#endif
