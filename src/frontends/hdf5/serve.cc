// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/serve.h"

#include "base/check.h"

namespace cairn::hdf5 {

bool serve(Dataset& dataset, const DatasetRead& read) {
  CAIRN_DCHECK(dataset.kind == Kind::kDataset);
  CAIRN_DCHECK(dataset.lower != nullptr);
  (void)dataset;
  (void)read;
  return false;
}

}  // namespace cairn::hdf5
