# SPDX-License-Identifier: Apache-2.0
#
# libcairn_preload.so: the hooks that stand before libc in an unmodified program. It must be a good guest:
# it exports the hooks and nothing else, and needs libc and the dynamic linker and nothing else, because a
# libstdc++ of another version may already live in the process. tools/preload_check.py proves both after each link.

get_property(CAIRN_HOOK_SOURCES GLOBAL PROPERTY CAIRN_HOOK_SOURCES)
if(NOT CAIRN_HOOK_SOURCES)
  return()
endif()

add_library(cairn_preload SHARED ${CAIRN_HOOK_SOURCES})
target_link_libraries(cairn_preload PRIVATE cairn_files cairn_processes cairn_mpi_interface cairn_guest_code)
# Hooks carry the names of libc's own functions, so neither its fortified inline versions nor large-file
# renaming may be in the way of their definitions.
# Its fcntl has other parameters than the one in the header that other sources include.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/frontends/posix/lock_calls.cc
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
cairn_compile_together(cairn_preload)
target_compile_options(cairn_preload PRIVATE -fno-rtti -U_FORTIFY_SOURCE)
# A hook that calls another one (syscall() calls most of them) means the one of this library, also where the program has
# a function of that name. Names that are bound here are not searched in each process that starts.
target_link_options(cairn_preload PRIVATE
  -Wl,-Bsymbolic-functions -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections -Wl,--exclude-libs,ALL
  -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete)

set(preload_map ${CMAKE_SOURCE_DIR}/src/frontends/preload.map)
if(EXISTS ${preload_map})
  target_link_options(cairn_preload PRIVATE -Wl,--version-script=${preload_map})
  set_property(TARGET cairn_preload APPEND PROPERTY LINK_DEPENDS ${preload_map})
endif()

set(preload_check ${CMAKE_SOURCE_DIR}/tools/preload_check.py)
set_property(TARGET cairn_preload APPEND PROPERTY LINK_DEPENDS ${preload_check})
add_custom_command(TARGET cairn_preload POST_BUILD
  COMMAND Python3::Interpreter ${preload_check} $<TARGET_FILE:cairn_preload> VERBATIM)
