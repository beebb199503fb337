// SPDX-License-Identifier: Apache-2.0
// A configuration file: each setting that is understood has an option and is found again in the
// text of the file; nothing else happens.
#include <string>

#include "base/check.h"
#include "cli/configuration/config_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const cairn::cli::ConfigFile file = cairn::cli::parse_config_text(text, "fuzz.yaml");
  for (const cairn::cli::Setting& setting : file.settings) {
    CAIRN_CHECK(setting.option != nullptr);
    CAIRN_CHECK(setting.source.starts_with("fuzz.yaml"));
  }
  for (const std::string& problem : file.problems) CAIRN_CHECK(!problem.empty());
  return 0;
}
