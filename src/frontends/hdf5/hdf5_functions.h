// SPDX-License-Identifier: Apache-2.0
// The functions of one HDF5 library, found at run time.
//
// A Python process may have three HDF5 libraries at once, one in the wheel of each of h5py, netCDF4
// and PyTables, and none exports its symbols to others. The connector links no HDF5; it looks its
// functions up in the library that has loaded it.
//
// Only functions whose signature is the same in HDF5 1.14 and 2.x are in the list. Macros that
// hide a variable or a version check (H5F_ACC_*, H5T_NATIVE_*, H5VL_NATIVE) must not be used.
//
// Thread safety: constant once found.
#pragma once

#include <hdf5.h>
// Behind hdf5.h, which it does not include.
#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

namespace cairn::hdf5 {

// What forwarding needs; in the order of the connector's class.
#define CAIRN_HDF5_FORWARDED(NAME)   \
  NAME(H5VLget_object)               \
  NAME(H5VLget_wrap_ctx)             \
  NAME(H5VLwrap_object)              \
  NAME(H5VLunwrap_object)            \
  NAME(H5VLfree_wrap_ctx)            \
  NAME(H5VLattr_create)              \
  NAME(H5VLattr_open)                \
  NAME(H5VLattr_read)                \
  NAME(H5VLattr_write)               \
  NAME(H5VLattr_get)                 \
  NAME(H5VLattr_specific)            \
  NAME(H5VLattr_optional)            \
  NAME(H5VLattr_close)               \
  NAME(H5VLdataset_create)           \
  NAME(H5VLdataset_open)             \
  NAME(H5VLdataset_read)             \
  NAME(H5VLdataset_write)            \
  NAME(H5VLdataset_get)              \
  NAME(H5VLdataset_specific)         \
  NAME(H5VLdataset_optional)         \
  NAME(H5VLdataset_close)            \
  NAME(H5VLdatatype_commit)          \
  NAME(H5VLdatatype_open)            \
  NAME(H5VLdatatype_get)             \
  NAME(H5VLdatatype_specific)        \
  NAME(H5VLdatatype_optional)        \
  NAME(H5VLdatatype_close)           \
  NAME(H5VLfile_create)              \
  NAME(H5VLfile_open)                \
  NAME(H5VLfile_get)                 \
  NAME(H5VLfile_specific)            \
  NAME(H5VLfile_optional)            \
  NAME(H5VLfile_close)               \
  NAME(H5VLgroup_create)             \
  NAME(H5VLgroup_open)               \
  NAME(H5VLgroup_get)                \
  NAME(H5VLgroup_specific)           \
  NAME(H5VLgroup_optional)           \
  NAME(H5VLgroup_close)              \
  NAME(H5VLlink_create)              \
  NAME(H5VLlink_copy)                \
  NAME(H5VLlink_move)                \
  NAME(H5VLlink_get)                 \
  NAME(H5VLlink_specific)            \
  NAME(H5VLlink_optional)            \
  NAME(H5VLobject_open)              \
  NAME(H5VLobject_copy)              \
  NAME(H5VLobject_get)               \
  NAME(H5VLobject_specific)          \
  NAME(H5VLobject_optional)          \
  NAME(H5VLintrospect_get_conn_cls)  \
  NAME(H5VLintrospect_get_cap_flags) \
  NAME(H5VLintrospect_opt_query)     \
  NAME(H5VLrequest_wait)             \
  NAME(H5VLrequest_notify)           \
  NAME(H5VLrequest_cancel)           \
  NAME(H5VLrequest_specific)         \
  NAME(H5VLrequest_optional)         \
  NAME(H5VLrequest_free)             \
  NAME(H5VLblob_put)                 \
  NAME(H5VLblob_get)                 \
  NAME(H5VLblob_specific)            \
  NAME(H5VLblob_optional)            \
  NAME(H5VLtoken_cmp)                \
  NAME(H5VLtoken_to_str)             \
  NAME(H5VLtoken_from_str)           \
  NAME(H5VLoptional)

// What the connector below is named, opened and compared with, and the stack of errors.
#define CAIRN_HDF5_OF_CONNECTORS(NAME)  \
  NAME(H5VLregister_connector_by_value) \
  NAME(H5VLget_value)                   \
  NAME(H5VLcmp_connector_cls)           \
  NAME(H5VLcopy_connector_info)         \
  NAME(H5VLcmp_connector_info)          \
  NAME(H5VLfree_connector_info)         \
  NAME(H5VLconnector_info_to_str)       \
  NAME(H5VLconnector_str_to_info)       \
  NAME(H5Iinc_ref)                      \
  NAME(H5Idec_ref)                      \
  NAME(H5Pcopy)                         \
  NAME(H5Pclose)                        \
  NAME(H5Pget_vol_info)                 \
  NAME(H5Pset_vol)                      \
  NAME(H5PLappend)                      \
  NAME(H5PLsize)                        \
  NAME(H5PLget)                         \
  NAME(H5PLremove)                      \
  NAME(H5Eget_current_stack)            \
  NAME(H5Eset_current_stack)            \
  NAME(H5Epush2)                        \
  NAME(H5Eauto_is_v2)                   \
  NAME(H5Eget_auto2)                    \
  NAME(H5Eset_auto2)                    \
  NAME(H5allocate_memory)               \
  NAME(H5free_memory)

// What serving a read has to ask of types, selections and creation properties.
#define CAIRN_HDF5_OF_READS(NAME)  \
  NAME(H5Dget_type)                \
  NAME(H5Dget_space)               \
  NAME(H5Dget_create_plist)        \
  NAME(H5Pget_layout)              \
  NAME(H5Pget_chunk)               \
  NAME(H5Pget_nfilters)            \
  NAME(H5Pget_filter2)             \
  NAME(H5Pget_chunk_opts)          \
  NAME(H5Pget_external_count)      \
  NAME(H5Pequal)                   \
  NAME(H5Pexist)                   \
  NAME(H5Pget)                     \
  NAME(H5Pget_size)                \
  NAME(H5Pset)                     \
  NAME(H5Pget_driver)              \
  NAME(H5Pget_fill_time)           \
  NAME(H5Pfill_value_defined)      \
  NAME(H5Screate_simple)           \
  NAME(H5Scopy)                    \
  NAME(H5Sclose)                   \
  NAME(H5Sget_simple_extent_type)  \
  NAME(H5Sget_simple_extent_ndims) \
  NAME(H5Sget_simple_extent_dims)  \
  NAME(H5Sget_select_type)         \
  NAME(H5Sget_select_npoints)      \
  NAME(H5Sget_select_bounds)       \
  NAME(H5Sis_regular_hyperslab)    \
  NAME(H5Sget_regular_hyperslab)   \
  NAME(H5Sselect_hyperslab)        \
  NAME(H5Sselect_none)             \
  NAME(H5Tequal)                   \
  NAME(H5Tget_size)                \
  NAME(H5Tget_class)               \
  NAME(H5Tclose)

#define CAIRN_HDF5_FUNCTIONS(NAME) \
  CAIRN_HDF5_FORWARDED(NAME)       \
  CAIRN_HDF5_OF_CONNECTORS(NAME)   \
  CAIRN_HDF5_OF_READS(NAME)

// Each member has the name and the type of the function that it points to.
// NOLINTBEGIN(readability-identifier-naming): HDF5's names.
struct Hdf5Functions {
#define CAIRN_HDF5_MEMBER(name) decltype(&::name) name;
  CAIRN_HDF5_FUNCTIONS(CAIRN_HDF5_MEMBER)
#undef CAIRN_HDF5_MEMBER
};
// NOLINTEND(readability-identifier-naming)

// Fills the table from a library that dlopen() has answered with. Returns: the name of the first
// function that the library does not have, or null where it has all.
const char* find_functions(void* library, Hdf5Functions& functions);

}  // namespace cairn::hdf5
