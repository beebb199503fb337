// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/connector.h"

#include <H5PLextern.h>

#include "base/check.h"
#include "frontends/hdf5/dataset_calls.h"
#include "frontends/hdf5/file_calls.h"
#include "frontends/hdf5/forwarding.h"
#include "frontends/hdf5/link_calls.h"
#include "frontends/hdf5/lower_connector.h"
#include "frontends/hdf5/wrap_calls.h"

namespace cairn::hdf5 {
namespace {

using F = Hdf5Functions;

static_assert(kConnectorValue >= 256 && kConnectorValue <= 511);

// A callback of one slot, made from a function whose first parameter is the library.
template <int Slot, auto Function>
struct InSlot;

template <int Slot, typename Result, typename... Parameters,
          Result (*Function)(Library&, Parameters...)>
struct InSlot<Slot, Function> {
  static Result call(Parameters... parameters) {
    return Function(library_in_slot(Slot), parameters...);
  }
};

template <int Slot, auto Function>
constexpr auto kInSlot = &InSlot<Slot, Function>::call;

herr_t initialize(Library& library, hid_t) {
  leave_search_path(library);
  return 0;
}
herr_t terminate() { return 0; }

// clang-format would put all of it on as few lines as possible.
// clang-format off
template <int Slot>
constexpr H5VL_class_t kClass = {
    .version = H5VL_VERSION,
    .value = kConnectorValue,
    .name = kConnectorName,
    .conn_version = 0,
    .cap_flags = 0,
    .initialize = kInSlot<Slot, initialize>,
    .terminate = terminate,
    .info_cls = {.size = sizeof(LowerConnector),
                 .copy = kInSlot<Slot, copy_lower>,
                 .cmp = kInSlot<Slot, compare_lower>,
                 .free = kInSlot<Slot, free_lower>,
                 .to_str = kInSlot<Slot, lower_to_string>,
                 .from_str = kInSlot<Slot, string_to_lower>},
    .wrap_cls = {.get_object = get_lower_object,
                 .get_wrap_ctx = get_wrap_context,
                 .wrap_object = wrap_object,
                 .unwrap_object = unwrap_object,
                 .free_wrap_ctx = free_wrap_context},
    .attr_cls = {.create = Opening<&F::H5VLattr_create>(),
                 .open = Opening<&F::H5VLattr_open>(),
                 .read = Forward<&F::H5VLattr_read>(),
                 .write = Forward<&F::H5VLattr_write>(),
                 .get = Forward<&F::H5VLattr_get>(),
                 .specific = Forward<&F::H5VLattr_specific>(),
                 .optional = Forward<&F::H5VLattr_optional>(),
                 .close = Closing<&F::H5VLattr_close>()},
    .dataset_cls = {.create = create_dataset,
                    .open = Opening<&F::H5VLdataset_open, Kind::kDataset>(),
                    .read = read_datasets,
                    .write = write_datasets,
                    .get = Forward<&F::H5VLdataset_get>(),
                    .specific = Forward<&F::H5VLdataset_specific>(),
                    .optional = Forward<&F::H5VLdataset_optional>(),
                    .close = close_dataset},
    .datatype_cls = {.commit = Opening<&F::H5VLdatatype_commit>(),
                     .open = Opening<&F::H5VLdatatype_open>(),
                     .get = Forward<&F::H5VLdatatype_get>(),
                     .specific = Forward<&F::H5VLdatatype_specific>(),
                     .optional = Forward<&F::H5VLdatatype_optional>(),
                     .close = Closing<&F::H5VLdatatype_close>()},
    .file_cls = {.create = kInSlot<Slot, create_file>,
                 .open = kInSlot<Slot, open_file>,
                 .get = Forward<&F::H5VLfile_get>(),
                 .specific = kInSlot<Slot, file_specific>,
                 .optional = Forward<&F::H5VLfile_optional>(),
                 .close = close_file},
    .group_cls = {.create = Opening<&F::H5VLgroup_create>(),
                  .open = Opening<&F::H5VLgroup_open>(),
                  .get = Forward<&F::H5VLgroup_get>(),
                  .specific = group_specific,
                  .optional = Forward<&F::H5VLgroup_optional>(),
                  .close = Closing<&F::H5VLgroup_close>()},
    .link_cls = {.create = create_link,
                 .copy = copy_link,
                 .move = move_link,
                 .get = Forward<&F::H5VLlink_get>(),
                 .specific = Forward<&F::H5VLlink_specific>(),
                 .optional = Forward<&F::H5VLlink_optional>()},
    .object_cls = {.open = open_object,
                   .copy = copy_object,
                   .get = Forward<&F::H5VLobject_get>(),
                   .specific = Forward<&F::H5VLobject_specific>(),
                   .optional = Forward<&F::H5VLobject_optional>()},
    .introspect_cls = {.get_conn_cls = get_connector_class,
                       .get_cap_flags = kInSlot<Slot, capabilities_of_lower>,
                       .opt_query = Forward<&F::H5VLintrospect_opt_query>()},
    .request_cls = {.wait = Forward<&F::H5VLrequest_wait>(),
                    .notify = Forward<&F::H5VLrequest_notify>(),
                    .cancel = Forward<&F::H5VLrequest_cancel>(),
                    .specific = Forward<&F::H5VLrequest_specific>(),
                    .optional = Forward<&F::H5VLrequest_optional>(),
                    .free = free_request},
    .blob_cls = {.put = Forward<&F::H5VLblob_put>(),
                 .get = Forward<&F::H5VLblob_get>(),
                 .specific = Forward<&F::H5VLblob_specific>(),
                 .optional = Forward<&F::H5VLblob_optional>()},
    .token_cls = {.cmp = Forward<&F::H5VLtoken_cmp>(),
                  .to_str = Forward<&F::H5VLtoken_to_str>(),
                  .from_str = Forward<&F::H5VLtoken_from_str>()},
    .optional = Forward<&F::H5VLoptional>()};
// clang-format on

constexpr const H5VL_class_t* kClasses[] = {&kClass<0>, &kClass<1>, &kClass<2>, &kClass<3>};
static_assert(sizeof kClasses / sizeof kClasses[0] == kLibrariesMax);

}  // namespace

const H5VL_class_t& connector_class_of(int slot) {
  CAIRN_DCHECK(slot >= 0);
  CAIRN_DCHECK(slot < kLibrariesMax);
  return *kClasses[slot];
}

const H5VL_class_t* connector_class_for(const void* address) {
  const int slot = claim_slot(address);
  if (slot < 0) return nullptr;
  Library& library = library_in_slot(slot);
  library.connector_class = &connector_class_of(slot);
  return library.connector_class;
}

}  // namespace cairn::hdf5

// The two functions that HDF5 looks up in a plugin; the linker exports no others
// (frontends/hdf5/plugin.map).
extern "C" {

H5PL_type_t H5PLget_plugin_type() { return H5PL_TYPE_VOL; }

// The caller's address says which library asks.
const void* H5PLget_plugin_info() {
  return cairn::hdf5::connector_class_for(__builtin_return_address(0));
}

}  // extern "C"
