# SPDX-License-Identifier: Apache-2.0
#
# cairn_module(): one room of src/ becomes, under the last part of its name,
#   cairn_<room>          a static library, or an INTERFACE library while the folder has no .cc
#   cairn_<room>_testing  its test doubles (src/<name>/testing/*.cc) and those of all modules below
#   test_<room>           one gtest binary of all its *_test.cc (made by cairn_add_module_tests)
# A folder that does not exist yet is an empty INTERFACE library, so modules can be declared before they are written.
# A module of which this machine lacks what it NEEDS is declared and not built; unbuilt_rooms.txt in the build names it.
# The sources of a module with HOOKS are collected for the preload library (cmake/preload.cmake) instead.

# Rooms whose tests go through many orders, keys or blocks: under a sanitizer they are too slow unless optimised.
set(CAIRN_ROOMS_THAT_COMPUTE catalog durable_log learning miss_ratios replay)

function(cairn_module name)
  cmake_parse_arguments(ARG "NO_EXCEPTIONS;HOOKS" "NEEDS" "DEPS;LIBRARIES" ${ARGN})
  if(ARG_NEEDS AND NOT ${ARG_NEEDS})
    set_property(GLOBAL APPEND_STRING PROPERTY CAIRN_UNBUILT_ROOMS "src/${name}/\n")
    return()
  endif()
  set(folder ${CMAKE_SOURCE_DIR}/src/${name})
  get_filename_component(room ${name} NAME)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(ARG_HOOKS)
    set_property(GLOBAL APPEND PROPERTY CAIRN_HOOK_SOURCES ${sources})
    return()
  endif()

  set(links ${ARG_LIBRARIES})
  set(testing_links cairn_${room})
  if(NOT name STREQUAL base)
    list(APPEND ARG_DEPS base)
  endif()
  foreach(dep IN LISTS ARG_DEPS)
    get_filename_component(dep_room ${dep} NAME)
    list(APPEND links cairn_${dep_room})
    list(APPEND testing_links cairn_${dep_room}_testing)
  endforeach()

  cairn_library(cairn_${room} "${sources}" "${links}")
  if(name MATCHES "^service/" AND NOT room IN_LIST CAIRN_ROOMS_THAT_COMPUTE)
    cairn_sanitize_quickly(cairn_${room})
  endif()
  if(ARG_NO_EXCEPTIONS AND sources)
    target_link_libraries(cairn_${room} PRIVATE cairn_guest_code)
  endif()

  file(GLOB testing_sources CONFIGURE_DEPENDS ${folder}/testing/*.cc)
  list(FILTER testing_sources EXCLUDE REGEX "_test\\.cc$")
  cairn_library(cairn_${room}_testing "${testing_sources}" "${testing_links}")

  set_property(GLOBAL APPEND PROPERTY CAIRN_MODULES ${room})
  set_property(GLOBAL PROPERTY CAIRN_TESTS_OF_${room} "${tests}")
endfunction()

# A static library of the sources, or an INTERFACE library when there are none.
function(cairn_library target sources links)
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC cairn_flags ${links})
    cairn_compile_together(${target})
    if(CAIRN_SANITIZE)
      set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)  # what no test links, no test runs
    endif()
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE cairn_flags ${links})
  endif()
endfunction()

# Reading headers (the standard library's, JSON, formatting, GoogleTest) takes longer than compiling what is written
# below them: several sources are compiled as one. The preset `debug` has each alone, and so finds what one of them
# forgot to include.
function(cairn_compile_together target)
  if(CMAKE_BUILD_TYPE STREQUAL Release)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# What only tests run is optimised for the time that its compiler takes; what it tests is as users run it. Under
# ThreadSanitizer the tests themselves take longer than their compiler.
function(cairn_compile_quickly target)
  if(CMAKE_BUILD_TYPE STREQUAL Release)
    target_compile_options(${target} PRIVATE -O1 -g1)
  elseif(CAIRN_SANITIZE MATCHES "address")
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# Under AddressSanitizer optimising doubles the compiler's time. A room that waits most of the time does without.
function(cairn_sanitize_quickly target)
  get_target_property(kind ${target} TYPE)
  if(CAIRN_SANITIZE MATCHES "address" AND kind STREQUAL STATIC_LIBRARY)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# A test that is compiled as many others are reads what they all include from one precompiled header, that of the first
# such target. Not in the preset `debug`, for the reason above.
function(cairn_read_headers_once target)
  if(CMAKE_BUILD_TYPE STREQUAL Debug)
    return()
  endif()
  get_property(owner GLOBAL PROPERTY CAIRN_TEST_HEADERS_OWNER)
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/test_headers.h)
    set_property(GLOBAL PROPERTY CAIRN_TEST_HEADERS_OWNER ${target})
  endif()
endfunction()

# The unit tests of every module. Under sanitizers the same binaries are built from instrumented modules.
function(cairn_add_module_tests)
  get_property(modules GLOBAL PROPERTY CAIRN_MODULES)
  foreach(name IN LISTS modules)
    get_property(tests GLOBAL PROPERTY CAIRN_TESTS_OF_${name})
    # What decides and what people type has no threads.
    if(CAIRN_SANITIZE MATCHES "thread" AND tests MATCHES "/src/policy/|/cli/")
      continue()
    endif()
    if(tests)
      add_executable(test_${name} ${tests})
      target_link_libraries(test_${name} PRIVATE cairn_${name}_testing GTest::gmock GTest::gtest_main)
      set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
      cairn_compile_together(test_${name})
      if(NOT CAIRN_SANITIZE OR NOT name IN_LIST CAIRN_ROOMS_THAT_COMPUTE)
        cairn_compile_quickly(test_${name})
        cairn_read_headers_once(test_${name})
      endif()
      add_test(NAME unit.${name} COMMAND test_${name})
      set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT ${CAIRN_UNIT_TEST_TIMEOUT})
      set_property(GLOBAL APPEND PROPERTY CAIRN_UNIT_TEST_TARGETS test_${name})
    endif()
  endforeach()
  get_property(targets GLOBAL PROPERTY CAIRN_UNIT_TEST_TARGETS)
  add_custom_target(unit_tests DEPENDS ${targets})
  # Each of these writes a policy's costs out anew, under the same names.
  if(TARGET test_placement)
    set_target_properties(test_placement PROPERTIES UNITY_BUILD OFF)
  endif()
endfunction()
