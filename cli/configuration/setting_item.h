// SPDX-License-Identifier: Apache-2.0
//
// One value as somebody wrote it in a file, the environment or a flag; nothing is interpreted yet.
//
// Thread safety: a plain value. Ownership: owns its strings.
#pragma once

#include <string>

namespace cairn::cli {

struct SettingItem {
  std::string text;    // a scalar, or DIR:SIZE of a tier
  std::string name;    // of a tier, empty where the user gave none
  std::string source;  // the place for messages: "job.yaml:12", "environment CAIRN_TIERS"
};

}  // namespace cairn::cli
