# SPDX-License-Identifier: Apache-2.0
#
# Language, warnings, optimisation and sanitizers, as two INTERFACE libraries:
#   cairn_flags       everything of ours
#   cairn_guest_code  additionally, code that ends up inside other people's programs (the preload library)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# -O2 as distributions ship programs; -g1 so that the stacks in a core of a user's job have functions and lines: what -g
# adds to that, variables and types, takes a third of the compiler's time. assert() and DCHECK are off only here.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")
# A report needs lines, not variables.
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")

# bin/ and lib/ side by side: the command line finds the preload library as ../lib/ relative to itself.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

add_library(cairn_flags INTERFACE)
target_include_directories(cairn_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_definitions(cairn_flags INTERFACE _GNU_SOURCE CAIRN_VERSION="${PROJECT_VERSION}")
# Designated initialisers that leave fields at their defaults are how option structs are meant to be used.
target_compile_options(cairn_flags INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(cairn_flags INTERFACE -Wthread-safety)
  if(CMAKE_UNITY_BUILD)
    # Sources that are compiled as one see each other's names, which gcc does not take for shadowed.
    target_compile_options(cairn_flags INTERFACE -Wno-shadow)
  endif()
endif()
if(CAIRN_WERROR)
  target_compile_options(cairn_flags INTERFACE -Werror)
endif()

# An exception cannot be allowed to cross an application's C frames. Thread-local variables must be reachable
# without __tls_get_addr, which may allocate and so call back into a hook.
add_library(cairn_guest_code INTERFACE)
target_compile_options(cairn_guest_code INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions> -ftls-model=initial-exec -fno-semantic-interposition
  -ffunction-sections -fdata-sections)

if(NOT CAIRN_CRASH_POINTS)
  target_compile_definitions(cairn_flags INTERFACE CAIRN_NO_CRASH_POINTS=1)
endif()

set(CAIRN_UNIT_TEST_TIMEOUT 300)
if(CAIRN_SANITIZE)
  # ThreadSanitizer slows the lock-free paths down by a factor of ten and more.
  set(CAIRN_UNIT_TEST_TIMEOUT 900)
  target_compile_options(cairn_flags INTERFACE -fsanitize=${CAIRN_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(cairn_flags INTERFACE -fsanitize=${CAIRN_SANITIZE})
  if(CAIRN_SANITIZE MATCHES "thread")
    target_compile_definitions(cairn_flags INTERFACE CAIRN_TSAN=1)
  endif()
  if(CAIRN_SANITIZE MATCHES "address")
    target_compile_definitions(cairn_flags INTERFACE CAIRN_ASAN=1)
  endif()
endif()
if(CAIRN_FUZZ)
  # libFuzzer follows the branches that an input takes, in all of our code; the programs with its main() are the
  # targets alone (tests/fuzz/CMakeLists.txt).
  target_compile_options(cairn_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_compile_definitions(cairn_flags INTERFACE CAIRN_FUZZ=1)
endif()
