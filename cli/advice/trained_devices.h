// SPDX-License-Identifier: Apache-2.0
// Advice by the models of devices that were trained (`cairn profile --train`), where they fit: for
// requests of a size, and so many in flight, as they were trained with. Figures of the profile
// remain for the rest, and a note says of which loads that was so.
//
// A load of more requests than any experiment had is taken for so many of the largest experiment,
// as the time of a device grows in proportion to them.
//
// Thread safety: one thread. Ownership: the question shares the models and their notes. Units:
// seconds, bytes.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "policy/advice/advice.h"
#include "policy/regressions/device_model.h"

namespace cairn::cli {

// The model of one access to one place, and what advice has asked it for.
struct TrainedUse {
  std::string place;      // "the store", or a tier's directory
  std::string directory;  // whose device it is
  std::string file;       // the journal
  std::string source;     // of the figures that remain
  bool is_read = true;
  DeviceModel model;
  double address_range_bytes = 0;  // of the workload
  // Filled in by advice.
  bool answered = false;
  std::set<std::string> outside;  // "requests of 1 MiB (4 KiB to 256 KiB were trained)"
};

using TrainedUses = std::vector<std::shared_ptr<TrainedUse>>;

// Gives the devices of a machine and of plans their models. `store_directory` is empty where the
// store is no device of this machine. A journal that cannot be read is a warning.
TrainedUses use_trained_devices(const std::string& store_directory, const advice::Workload& work,
                                advice::Machine* machine, advice::Wishes* wishes);

// One for each model that advice asked.
std::vector<std::string> trained_sentences(const TrainedUses& uses);

}  // namespace cairn::cli
