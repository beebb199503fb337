# SPDX-License-Identifier: Apache-2.0
#
# Third-party libraries, all from Debian packages (the list is in ./dev). None reaches the preload library.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Python3 COMPONENTS Interpreter REQUIRED)
if(CAIRN_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

# liburing ships no CMake package.
find_path(LIBURING_INCLUDE_DIR liburing.h REQUIRED)
find_library(LIBURING_LIBRARY uring REQUIRED)
add_library(cairn_liburing INTERFACE)
target_link_libraries(cairn_liburing INTERFACE ${LIBURING_LIBRARY})
