# SPDX-License-Identifier: Apache-2.0
#
# lib/cairn/hdf5/libcairn_hdf5.so: the connector that HDF5 loads into programs that name it (src/frontends/hdf5), and
# beside it libcairn_vfd.so, the file driver (src/frontends/driver). They have a folder of their own, because
# HDF5_PLUGIN_PATH points there and HDF5 tries to load whatever lies in such a folder.
#
# They are built with the headers of HDF5 and link none: their functions are those of the HDF5 that has loaded them.
# Debian 12's HDF5 is too old, so ./dev brings the headers (tools/hdf5/headers.sh) to build/hdf5, for all build types.

set(CAIRN_HDF5_INCLUDE_DIR ${CMAKE_SOURCE_DIR}/build/hdf5 CACHE PATH "Headers of HDF5 2.x, for the connector")

# Headers that come later are found by the next build.
file(GLOB hdf5_header CONFIGURE_DEPENDS ${CAIRN_HDF5_INCLUDE_DIR}/hdf5.h)
if(hdf5_header)
  set(CAIRN_HAVE_HDF5 ON)
  add_library(cairn_hdf5_headers INTERFACE)
  target_include_directories(cairn_hdf5_headers SYSTEM INTERFACE ${CAIRN_HDF5_INCLUDE_DIR})
else()
  set(CAIRN_HAVE_HDF5 OFF)
  message(STATUS "No headers of HDF5 in ${CAIRN_HDF5_INCLUDE_DIR} (./dev build brings them): no HDF5 connector")
endif()

# A room of the table of modules becomes a plugin beside the others. HDF5 unloads plugins that it has tried, and calls
# from its exit handler.
function(cairn_add_hdf5_plugin target room)
  set(map ${CMAKE_SOURCE_DIR}/src/frontends/hdf5/plugin.map)
  # A target needs a source; all sources of this one are in the room's library.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${target}.cc CONTENT "// See cmake/hdf5.cmake.\n")
  add_library(${target} MODULE ${CMAKE_BINARY_DIR}/generated/${target}.cc)
  target_link_libraries(${target} PRIVATE cairn_${room})
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/cairn/hdf5 LINK_DEPENDS ${map})
  target_link_options(${target} PRIVATE -Wl,-u,H5PLget_plugin_info -Wl,--version-script=${map}
    -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,relro -Wl,--as-needed -Wl,--gc-sections)
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tools/preload_check.py $<TARGET_FILE:${target}> VERBATIM)
endfunction()

function(cairn_add_hdf5_plugins)
  cairn_add_hdf5_plugin(cairn_hdf5_connector hdf5)
  set_target_properties(cairn_hdf5_connector PROPERTIES OUTPUT_NAME cairn_hdf5)
  cairn_add_hdf5_plugin(cairn_vfd driver)
endfunction()
