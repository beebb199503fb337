# SPDX-License-Identifier: Apache-2.0
#
# cairn_module(): one folder of src/ becomes
#   cairn_<name>          a static library, or an INTERFACE library while the folder has no .cc
#   cairn_<name>_testing  its test doubles (src/<name>/testing/*.cc) and those of all modules below
#   test_<name>           one gtest binary of all its *_test.cc (made by cairn_add_module_tests)
# A folder that does not exist yet is an empty INTERFACE library, so modules can be declared before they are written.

function(cairn_module name)
  cmake_parse_arguments(ARG "NO_EXCEPTIONS" "" "DEPS;MAY_INCLUDE;LIBRARIES;SUBDIRS" ${ARGN})
  set(folder ${CMAKE_SOURCE_DIR}/src/${name})
  set(folders ${folder})
  foreach(subdir IN LISTS ARG_SUBDIRS)
    list(APPEND folders ${folder}/${subdir})
  endforeach()
  set(patterns ${folders})
  list(TRANSFORM patterns APPEND /*.cc)
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")

  set(links ${ARG_LIBRARIES})
  set(testing_links cairn_${name})
  foreach(dep IN LISTS ARG_DEPS)
    list(APPEND links cairn_${dep})
    list(APPEND testing_links cairn_${dep}_testing)
  endforeach()
  # A header shared with a sibling may have a source beside it; the sibling's archive then supplies it.
  foreach(header IN LISTS ARG_MAY_INCLUDE)
    string(REGEX REPLACE "/.*" "" sibling ${header})
    list(APPEND links cairn_${sibling})
  endforeach()

  cairn_library(cairn_${name} "${sources}" "${links}")
  if(ARG_NO_EXCEPTIONS AND sources)
    target_link_libraries(cairn_${name} PRIVATE cairn_guest_code)
  endif()
  if(ARG_LIBRARIES AND sources)
    cairn_compile_together(cairn_${name})
  endif()

  set(testing_patterns ${folders})
  list(TRANSFORM testing_patterns APPEND /testing/*.cc)
  file(GLOB testing_sources CONFIGURE_DEPENDS ${testing_patterns})
  list(FILTER testing_sources EXCLUDE REGEX "_test\\.cc$")
  cairn_library(cairn_${name}_testing "${testing_sources}" "${testing_links}")

  set_property(GLOBAL APPEND PROPERTY CAIRN_MODULES ${name})
  set_property(GLOBAL PROPERTY CAIRN_TESTS_OF_${name} "${tests}")
endfunction()

# A static library of the sources, or an INTERFACE library when there are none.
function(cairn_library target sources links)
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC cairn_flags ${links})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE cairn_flags ${links})
  endif()
endfunction()

# Where reading headers of third parties (JSON, formatting, logging, GoogleTest) takes longer than compiling what is
# written below them, several sources are compiled as one. The build with the second compiler, which clang-tidy
# reads, has each alone and so finds what one of them forgot to include.
function(cairn_compile_together target)
  if(CMAKE_BUILD_TYPE STREQUAL Release)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# The unit tests of every module. Under sanitizers the same binaries are built from instrumented modules.
function(cairn_add_module_tests)
  get_property(modules GLOBAL PROPERTY CAIRN_MODULES)
  foreach(name IN LISTS modules)
    get_property(tests GLOBAL PROPERTY CAIRN_TESTS_OF_${name})
    if(tests)
      add_executable(test_${name} ${tests})
      target_link_libraries(test_${name} PRIVATE cairn_${name}_testing GTest::gmock GTest::gtest_main)
      set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
      cairn_compile_together(test_${name})
      add_test(NAME unit.${name} COMMAND test_${name})
      set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT ${CAIRN_UNIT_TEST_TIMEOUT})
      set_property(GLOBAL APPEND PROPERTY CAIRN_UNIT_TEST_TARGETS test_${name})
    endif()
  endforeach()
  get_property(targets GLOBAL PROPERTY CAIRN_UNIT_TEST_TARGETS)
  add_custom_target(unit_tests DEPENDS ${targets})
  # Each of these writes a policy's costs out anew, under the same names.
  set_target_properties(test_placement PROPERTIES UNITY_BUILD OFF)
endfunction()
