// SPDX-License-Identifier: Apache-2.0
// A file of arrays' grids: as it is, and sealed. Grids that are taken can be written again, and are
// found by the looks of their arrays.
#include "policy/arrays/known_grids.h"

#include "base/check.h"
#include "fuzz/fuzz_input.h"

namespace {

void read(std::string_view bytes) {
  const auto grids = cairn::arrays::KnownGrids::decode(bytes);
  if (!grids) return;
  const std::string written = grids->encode();
  const auto again = cairn::arrays::KnownGrids::decode(written);
  CAIRN_CHECK(again.is_ok() && again->size() == grids->size() && again->encode() == written);
  (void)grids->find({{64, 64}, 4, {}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const cairn::fuzz::FuzzInput input(data, size);
  read(input.rest());
  read(cairn::seal(cairn::arrays::KnownGrids::kKind, input.rest()));
  return 0;
}
