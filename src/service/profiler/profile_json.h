// SPDX-License-Identifier: Apache-2.0
//
// Profiles as JSON, in the file of the store and in the output of `cairn profile --json`.
//
// Thread safety: pure functions. Ownership: results are values. Errors: what is read is checked
// field by field; a missing or impossible value makes the whole profile invalid, and the message
// names it.
#pragma once

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "service/profiler/device_profile.h"

namespace cairn::profiler {

nlohmann::json spread_json(const Spread& spread);
nlohmann::json identity_json(const DeviceIdentity& identity);
nlohmann::json figures_json(const DeviceFigures& figures);
nlohmann::json profile_json(const DeviceProfile& profile);

Result<DeviceIdentity> identity_of_json(const nlohmann::json& json);
Result<DeviceProfile> profile_of_json(const nlohmann::json& json);

}  // namespace cairn::profiler
