// SPDX-License-Identifier: Apache-2.0
// A heat map's file: as it is, and with the name, the version and the sum of a whole one, so that
// the values behind them are reached. A map that is taken can be written again.
#include "policy/heat/heat_file.h"

#include "base/check.h"
#include "base/kept_file.h"
#include "fuzz/fuzz_input.h"
#include "policy/heat/file_heat.h"

namespace {

constexpr cairn::HeatPace kPace;

cairn::ObjectKey key() { return cairn::file_key(1, 2, 3); }

void read(std::string_view bytes) {
  auto state = cairn::decode_heat(bytes, key(), kPace);
  if (!state.is_ok()) return;
  const std::string written = cairn::encode_heat(key(), state.value());
  CAIRN_CHECK(cairn::decode_heat(written, key(), kPace).is_ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cairn::fuzz::FuzzInput input(data, size);
  read(input.rest());
  cairn::FileHeat::State empty;
  empty.pace = kPace;
  // The identity and the pace of this very file, then anything.
  const cairn::KeptKind kind{.noun = "", .magic = "CAIRNHEA"};
  const std::string whole = cairn::encode_heat(key(), empty);
  std::string value(*cairn::unseal(
      cairn::KeptKind{
          .noun = "", .magic = "CAIRNHEA", .version = 1, .value_min = 0, .bytes_max = whole.size()},
      whole));
  constexpr std::size_t kIdentity = 24;
  constexpr std::size_t kPaceAt = 32;
  std::string pace = value.substr(kPaceAt, 16);
  value.resize(kIdentity);
  value += input.take_bytes(8);
  value.resize(kPaceAt, '\0');
  value += pace;
  value += input.rest();
  read(cairn::seal(kind, value));
  return 0;
}
