// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/tier_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/private_file.h"
#include "base/size_text.h"
#include "cli/terminal/paths.h"

namespace cairn::cli {

void TierSettings::apply(const std::vector<SettingItem>& items, const std::string& source) {
  tiers_.clear();
  sources_of_.clear();
  source_ = source;
  is_auto_ = false;
  for (const SettingItem& item : items) {
    if (item.text == "auto" || item.text == "none") {
      is_auto_ = item.text == "auto";
      if (items.size() > 1) {
        complain_(item.source,
                  fmt::format("tiers: \"{}\" cannot stand beside named tiers", item.text));
      }
      continue;
    }
    const bool is_durable = item.text.ends_with(kDurableSuffix);
    const std::string text =
        item.text.substr(0, item.text.size() - (is_durable ? kDurableSuffix.size() : 0));
    const size_t colon = text.rfind(':');
    const std::string directory = text.substr(0, std::min(colon, text.size()));
    const std::string size_text = colon == std::string::npos ? "" : text.substr(colon + 1);
    const auto capacity = parse_size(size_text);
    if (directory.empty() || colon == std::string::npos) {
      complain_(item.source,
                fmt::format("tiers: \"{}\" is not DIRECTORY:SIZE, such as /local:100G, or "
                            "DIRECTORY:SIZE:durable",
                            item.text));
    } else if (!capacity) {
      complain_(item.source, fmt::format("tiers: capacity \"{}\" of {} is not a size such as 100G",
                                         size_text, directory));
    } else {
      tiers_.push_back({item.name, absolute_path(directory), *capacity, is_durable});
      sources_of_.push_back(item.source);
    }
  }
}

std::vector<FileTierConfig> TierSettings::resolve(const std::vector<std::string>& buffered) {
  buffered_ = buffered;
  if (is_auto_) {
    find_tier();
    return tiers_;
  }
  name_tiers();
  std::map<uint64_t, uint64_t> wanted_by_device;
  for (size_t index = 0; index < tiers_.size(); ++index)
    check_tier(tiers_[index], sources_of_[index], &wanted_by_device);
  check_set();
  return tiers_;
}

void TierSettings::find_tier() {
  std::vector<std::string> buffered = buffered_;
  if (buffered.empty()) buffered.push_back(working_directory());
  const auto found = find_file_tier(tier_directory_candidates(), buffered, roots_);
  if (!found) {
    source_ = "found: no local solid-state disk with room besides the buffered one";
    return;
  }
  tiers_.push_back({"disk", found->directory, found->capacity_bytes});
  source_ = "found: " + found->reason;
}

// A tier that was not named is called by its place: tier1, tier2.
void TierSettings::name_tiers() {
  size_t number = 0;
  for (FileTierConfig& tier : tiers_) {
    ++number;
    if (tier.name.empty()) tier.name = fmt::format("tier{}", number);
  }
}

void TierSettings::check_tier(const FileTierConfig& tier, const std::string& source,
                              std::map<uint64_t, uint64_t>* wanted_by_device) {
  const auto wrong = [&](const std::string& text) {
    complain_(source, fmt::format("tier {}: {}", tier.name, text));
  };
  const bool good_name = std::all_of(tier.name.begin(), tier.name.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
  });
  if (!good_name || tier.name.size() > 31) {
    wrong("a tier's name is made of at most 31 letters, digits, \"_\" and \"-\"");
  }
  if (tier.name == "ram" || tier.name == "store") {
    wrong(fmt::format("the name {} is taken", tier.name));
  }
  if (tier.capacity_bytes < kCapacityMin) {
    wrong(fmt::format("a capacity of {} is too small, at least 1 MiB",
                      format_size(tier.capacity_bytes)));
  }
  const DirectoryState state = read_directory_state(tier.directory, roots_);
  if (!state.exists) {
    wrong(fmt::format("directory {} does not exist; create it, or name another", tier.directory));
  } else if (!state.is_directory) {
    wrong(fmt::format("{} is not a directory", tier.directory));
  } else if (state.in_memory) {
    wrong(fmt::format("{} is on {}, which is memory; raise ram.capacity instead", tier.directory,
                      state.file_system));
  } else if (state.read_only_mount) {
    wrong(fmt::format("{} is on a file system that is mounted read-only", tier.directory));
  } else if (!state.writable) {
    wrong(fmt::format("you may not write in {}", tier.directory));
  } else if (const Status safe = check_safe_directory(tier.directory); !safe) {
    wrong(safe.message());
  } else {
    uint64_t& wanted = (*wanted_by_device)[state.device];
    const bool already_too_large = wanted > state.free_bytes;
    wanted += tier.capacity_bytes;
    if (wanted > state.free_bytes && !already_too_large) {
      wrong(fmt::format("{} is larger than what is free in {} ({})",
                        wanted == tier.capacity_bytes
                            ? format_size(tier.capacity_bytes)
                            : format_size(wanted) + " together with the tiers above it",
                        tier.directory, format_size(state.free_bytes)));
    }
  }
}

void TierSettings::check_durable() {
  const FileTierConfig* first = nullptr;
  for (size_t index = 0; index < tiers_.size(); ++index) {
    const FileTierConfig& tier = tiers_[index];
    if (!tier.is_durable) continue;
    if (first != nullptr) {
      complain_(sources_of_[index],
                fmt::format("tier {}: {} is durable already, and a node has one log; take the "
                            "word off one of them",
                            tier.name, first->name));
    } else if (tier.capacity_bytes < kDurableCapacityMin) {
      complain_(sources_of_[index],
                fmt::format("tier {}: {} is too small for a durable tier, at least {}", tier.name,
                            format_size(tier.capacity_bytes), format_size(kDurableCapacityMin)));
    }
    first = &tier;
  }
}

void TierSettings::check_set() {
  const std::vector<FileTierConfig>& tiers = tiers_;
  check_durable();
  if (tiers.size() > kFileTiersMax) {
    complain_(source_, fmt::format("tiers: {} file tiers, at most {} are possible", tiers.size(),
                                   kFileTiersMax));
  }
  for (size_t index = 0; index < tiers.size(); ++index) {
    for (size_t other = 0; other < index; ++other) {
      if (tiers[index].name == tiers[other].name) {
        complain_(sources_of_[index],
                  fmt::format("tier {}: the name is used twice", tiers[index].name));
      }
      if (tiers[index].directory == tiers[other].directory) {
        complain_(sources_of_[index],
                  fmt::format("tier {}: {} is the directory of tier {} too", tiers[index].name,
                              tiers[index].directory, tiers[other].name));
      }
    }
    for (const std::string& buffered : buffered_) {
      const std::string inside = tiers[index].directory + "/";
      if (buffered == tiers[index].directory || buffered.rfind(inside, 0) == 0) {
        complain_(sources_of_[index],
                  fmt::format("tier {}: the buffered directory {} lies in its directory {}",
                              tiers[index].name, buffered, tiers[index].directory));
      }
    }
  }
}

}  // namespace cairn::cli
