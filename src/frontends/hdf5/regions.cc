// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/regions.h"

#include <dlfcn.h>

namespace cairn::hdf5 {
namespace {

template <typename Function>
bool find(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

struct Found {
  RegionCalls calls{};
  bool has_all = find("cairn_region_version", calls.version) &&
                 find("cairn_region_read", calls.read) && find("cairn_region_keep", calls.keep) &&
                 find("cairn_array_read", calls.tell) && find("cairn_array_news", calls.news) &&
                 find("cairn_packed_read", calls.tell_packed) &&
                 find("cairn_array_grid", calls.grid) && find("cairn_array_fetch", calls.fetch);
};

}  // namespace

const RegionCalls* region_calls() {
  static const Found kFound;
  return kFound.has_all ? &kFound.calls : nullptr;
}

}  // namespace cairn::hdf5
