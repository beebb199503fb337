// SPDX-License-Identifier: Apache-2.0
// The file tiers of a node, from what the user says of them: `DIRECTORY:SIZE` or
// `DIRECTORY:SIZE:durable` each, "auto" or "none".
//
// Thread safety: none. Ownership: borrows the machine's roots.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/node_config.h"
#include "cli/configuration/machine.h"
#include "cli/configuration/setting_item.h"

namespace cairn::cli {

class TierSettings {
 public:
  // A tier holds at least this.
  static constexpr uint64_t kCapacityMin = uint64_t{1} << 20;
  // Behind DIRECTORY:SIZE: the tier outlives the machine.
  static constexpr std::string_view kDurableSuffix = ":durable";
  // Such a tier holds a log as well.
  static constexpr uint64_t kDurableCapacityMin = uint64_t{64} << 20;

  // Hears of each mistake, with the file and line, variable or option that it comes from.
  using Complain = std::function<void(const std::string& source, const std::string& text)>;

  TierSettings(const MachineRoots& roots, Complain complain)
      : roots_(roots), complain_(static_cast<Complain&&>(complain)) {}

  // Replaces the earlier setting. Checks the form alone; resolve() looks at the directories, once.
  void apply(const std::vector<SettingItem>& items, const std::string& source);

  // The tiers with their names, checked. "auto" looks for a directory that suits one.
  std::vector<FileTierConfig> resolve(const std::vector<std::string>& buffered);

  // Where they come from.
  const std::string& source() const { return source_; }

 private:
  void find_tier();
  void name_tiers();
  void check_tier(const FileTierConfig& tier, const std::string& source,
                  std::map<uint64_t, uint64_t>* wanted_by_device);
  void check_set();
  void check_durable();

  const MachineRoots& roots_;
  const Complain complain_;
  bool is_auto_ = true;
  std::vector<FileTierConfig> tiers_;
  std::vector<std::string> sources_of_;  // parallel to tiers_
  std::vector<std::string> buffered_;
  std::string source_;
};

}  // namespace cairn::cli
