// SPDX-License-Identifier: Apache-2.0
#include "service/training/trained_device.h"

#include "base/check.h"

namespace cairn::training {

Result<std::optional<TrainedDevice>> trained_device(const std::string& directory,
                                                    const std::string& store_file) {
  std::optional<TrainedDevice> none;
  const auto identity = profiler::identify_directory(directory);
  if (!identity) return identity.status();
  const std::string file = Journal::file_for(*identity, store_file);
  if (file.empty()) return none;
  const auto journal = Journal::read(file, *identity);
  if (!journal && journal.status().code() == StatusCode::kNotFound) return none;
  if (!journal) return journal.status();
  if (journal->finished().empty()) return none;
  std::optional<TrainedDevice> device = TrainedDevice{file, fit_models(journal->finished())};
  CAIRN_CHECK(device->models.size() == 2);
  return device;
}

}  // namespace cairn::training
