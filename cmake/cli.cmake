# SPDX-License-Identifier: Apache-2.0
#
# bin/cairn: the command line, which is also the node service (`cairn node-service`). Its rooms (cli/<room>/) are one
# library; tools/layer_check.py has their order.

file(GLOB_RECURSE CAIRN_CLI_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cli/*.cc)
set(CAIRN_CLI_TESTS ${CAIRN_CLI_SOURCES})
list(FILTER CAIRN_CLI_TESTS INCLUDE REGEX "_test\\.cc$")
list(FILTER CAIRN_CLI_SOURCES EXCLUDE REGEX "_test\\.cc$")
if(NOT EXISTS ${CMAKE_SOURCE_DIR}/cli/main.cc)
  return()
endif()

# Everything but main() is a library, so that tests beside the sources can link it.
set(cli_library_sources ${CAIRN_CLI_SOURCES})
list(FILTER cli_library_sources EXCLUDE REGEX "/main\\.cc$")
cairn_library(cairn_cli "${cli_library_sources}"
              "cairn_node;cairn_profiler;cairn_rules;cairn_trace;cairn_replacement;CLI11::CLI11")
set(cli_scope INTERFACE)
if(cli_library_sources)
  set(cli_scope PUBLIC)
  cairn_compile_together(cairn_cli)
endif()
target_include_directories(cairn_cli ${cli_scope} ${CMAKE_SOURCE_DIR})

add_executable(cairn ${CMAKE_SOURCE_DIR}/cli/main.cc)
target_link_libraries(cairn PRIVATE cairn_cli)
if(NOT CAIRN_SANITIZE)
  target_link_options(cairn PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections)
endif()

set_property(GLOBAL APPEND PROPERTY CAIRN_MODULES cli)
set_property(GLOBAL PROPERTY CAIRN_TESTS_OF_cli "${CAIRN_CLI_TESTS}")
cairn_library(cairn_cli_testing "" "cairn_cli;cairn_node_testing;cairn_profiler_testing")

# `cairn heatmap --png` starts it.
configure_file(${CMAKE_SOURCE_DIR}/share/cairn/heatmap.py ${CMAKE_BINARY_DIR}/share/cairn/heatmap.py COPYONLY)
