# SPDX-License-Identifier: Apache-2.0
#
# The suites under tests/: each folder with a CMakeLists.txt takes part. Helpers for them:
#   cairn_test_program(NAME SOURCES file... [LINK target...])
#       a program in build/<preset>/tests, not run by itself
#   cairn_add_suite_test(NAME COMMAND word... [LABELS label...] [TIMEOUT seconds] [RUN_SERIAL])
#       a ctest entry; it finds the build in $CAIRN_BUILD and the sources in $CAIRN_SOURCE, exit 77 means skipped
#
# Under a sanitizer only the suites that link the modules directly take part; there is no preload library then.
set(CAIRN_SANITIZED_SUITES multiprocess model)

function(cairn_test_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE cairn_flags ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  cairn_compile_quickly(${name})
  if(ARG_LINK MATCHES "GTest::")
    cairn_read_headers_once(${name})
  endif()
endfunction()

function(cairn_add_suite_test name)
  cmake_parse_arguments(ARG "RUN_SERIAL" "TIMEOUT" "COMMAND;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
    RUN_SERIAL ${ARG_RUN_SERIAL} SKIP_RETURN_CODE 77
    ENVIRONMENT "CAIRN_BUILD=${CMAKE_BINARY_DIR};CAIRN_SOURCE=${CMAKE_SOURCE_DIR}")
endfunction()

file(GLOB CAIRN_SUITES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/CMakeLists.txt)
foreach(suite IN LISTS CAIRN_SUITES)
  get_filename_component(suite_folder ${suite} DIRECTORY)
  get_filename_component(suite_name ${suite_folder} NAME)
  if(NOT CAIRN_SANITIZE OR suite_name IN_LIST CAIRN_SANITIZED_SUITES)
    add_subdirectory(${suite_folder})
  endif()
endforeach()

# The checks of tools/ have tests of their own: each shows that a violating sample is caught.
file(GLOB CAIRN_TOOL_TESTS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/*_test.py)
if(CAIRN_SANITIZE)
  set(CAIRN_TOOL_TESTS "")
endif()
foreach(tool_test IN LISTS CAIRN_TOOL_TESTS)
  get_filename_component(tool_name ${tool_test} NAME_WE)
  cairn_add_suite_test(tools.${tool_name} COMMAND ${Python3_EXECUTABLE} ${tool_test} LABELS tools)
endforeach()
