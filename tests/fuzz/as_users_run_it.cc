// SPDX-License-Identifier: Apache-2.0
// A part of each target: an assertion of the debug build would end a service that finds hostile
// bytes, which the service that users run refuses.
#include "base/check.h"

namespace {

[[maybe_unused]] const bool g_are_on = cairn::g_dchecks_are_on = false;

}  // namespace
