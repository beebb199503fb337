# SPDX-License-Identifier: Apache-2.0
#
# bin/cairn, the command, and lib/cairn/commands.so, which it opens for all but plain runs on a running node
# (cli/commands/commands_library.h). The rooms (cli/<room>/) are two libraries: what plain runs need, and all else;
# tools/layer_check.py has their order.

file(GLOB_RECURSE CAIRN_CLI_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cli/*.cc)
set(CAIRN_CLI_TESTS ${CAIRN_CLI_SOURCES})
list(FILTER CAIRN_CLI_TESTS INCLUDE REGEX "_test\\.cc$")
list(FILTER CAIRN_CLI_SOURCES EXCLUDE REGEX "_test\\.cc$")
if(NOT EXISTS ${CMAKE_SOURCE_DIR}/cli/main.cc)
  return()
endif()

# Everything but the two entries is in libraries, so that tests beside the sources can link it.
set(plain_run_rooms "/cli/(terminal|node|launch|run)/")
set(cli_run_sources ${CAIRN_CLI_SOURCES})
list(FILTER cli_run_sources INCLUDE REGEX ${plain_run_rooms})
set(cli_library_sources ${CAIRN_CLI_SOURCES})
list(FILTER cli_library_sources EXCLUDE REGEX "${plain_run_rooms}|/cli/(main|commands)\\.cc$")
cairn_library(cairn_cli_run "${cli_run_sources}"
              "cairn_base;cairn_fmt;nlohmann_json::nlohmann_json;${CMAKE_DL_LIBS}")
set(cli_modules cairn_node cairn_replay cairn_profiler cairn_training cairn_rules cairn_trace cairn_replacement
    cairn_miss_ratios cairn_traffic cairn_advice)
# ncurses has short names, and is included by one source alone.
set_source_files_properties(${CMAKE_SOURCE_DIR}/cli/top/live_terminal.cc PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON COMPILE_DEFINITIONS NCURSES_NOMACROS=1)
# `cairn top`. Debian's archives of it are made for programs, and commands.so is none.
find_library(CAIRN_NCURSES_SO NAMES ncursesw REQUIRED)
find_library(CAIRN_TINFO_SO NAMES tinfo REQUIRED)
cairn_library(cairn_cli "${cli_library_sources}"
              "cairn_cli_run;${cli_modules};CLI11::CLI11;${CAIRN_NCURSES_SO};${CAIRN_TINFO_SO}")
foreach(library cairn_cli_run cairn_cli)
  target_include_directories(${library} PUBLIC ${CMAKE_SOURCE_DIR})
  cairn_sanitize_quickly(${library})
endforeach()

add_library(cairn_commands MODULE ${CMAKE_SOURCE_DIR}/cli/commands.cc)
target_link_libraries(cairn_commands PRIVATE cairn_cli)
set_target_properties(cairn_commands PROPERTIES
  PREFIX "" OUTPUT_NAME commands LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/cairn)

add_executable(cairn ${CMAKE_SOURCE_DIR}/cli/main.cc)
target_link_libraries(cairn PRIVATE cairn_cli_run)
add_dependencies(cairn cairn_commands)
if(CAIRN_SANITIZE)
  set_target_properties(cairn cairn_commands PROPERTIES EXCLUDE_FROM_ALL ON)
else()
  target_link_options(cairn_commands PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections
    -Wl,--exclude-libs,ALL -Wl,-z,defs -Wl,-z,relro)
  # At a fixed address the dynamic linker has no pointers to adjust, and touches none of their pages.
  target_link_options(cairn PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections -no-pie)
endif()

set_property(GLOBAL APPEND PROPERTY CAIRN_MODULES cli)
set_property(GLOBAL PROPERTY CAIRN_TESTS_OF_cli "${CAIRN_CLI_TESTS}")
cairn_library(cairn_cli_testing "" "cairn_cli;cairn_node_testing;cairn_profiler_testing")

# The options --png of `cairn heatmap`, `cairn arrays`, `cairn profile --train` and `cairn report` start them.
foreach(script heatmap arrays training report picture)
  configure_file(${CMAKE_SOURCE_DIR}/share/cairn/${script}.py ${CMAKE_BINARY_DIR}/share/cairn/${script}.py COPYONLY)
endforeach()
