# SPDX-License-Identifier: Apache-2.0
#
# Third-party libraries, all from Debian packages (the list is in ./dev). None reaches the preload library.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
# Commands start in a third of the time when the dynamic linker has only libc to load (0.3 ms instead of 0.9 ms over
# /bin/true): the C++ libraries are taken as archives or headers. cli/commands.cc has what this archive needs.
find_library(YAML_CPP_ARCHIVE libyaml-cpp.a)
add_library(cairn_yaml INTERFACE)
# The archive is no position-independent code: a shared object can have it only with the archive of libstdc++ beside it.
if(YAML_CPP_ARCHIVE AND NOT CAIRN_SANITIZE)
  target_link_libraries(cairn_yaml INTERFACE ${YAML_CPP_ARCHIVE})
else()
  target_link_libraries(cairn_yaml INTERFACE yaml-cpp)
endif()
# No number is written as a locale would have it; without this, the locales of libstdc++ are half of the command.
add_library(cairn_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt_archive.cc)
target_link_libraries(cairn_fmt PRIVATE cairn_flags)
target_compile_definitions(cairn_fmt PUBLIC "FMT_STATIC_THOUSANDS_SEPARATOR=','")
# Debian's spdlog wants fmt as a shared library.
get_target_property(spdlog_needs spdlog::spdlog_header_only INTERFACE_LINK_LIBRARIES)
list(TRANSFORM spdlog_needs REPLACE "^fmt::fmt$" "cairn_fmt")
set_target_properties(spdlog::spdlog_header_only PROPERTIES INTERFACE_LINK_LIBRARIES "${spdlog_needs}")
# Only the schema reader needs it (cmake/schema_xml.cmake), which the command opens when it reads a schema.
find_package(LibXml2 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Python3 COMPONENTS Interpreter REQUIRED)
if(CAIRN_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

# The archive of a library; with sanitizers the shared object, because Debian does not make all archives for those.
function(cairn_find_archive variable name)
  if(CAIRN_SANITIZE)
    find_library(${variable} NAMES ${name} REQUIRED)
  else()
    find_library(${variable} NAMES lib${name}.a ${name} REQUIRED)
  endif()
endfunction()

# liburing ships no CMake package.
find_path(LIBURING_INCLUDE_DIR liburing.h REQUIRED)
cairn_find_archive(LIBURING_LIBRARY uring)
add_library(cairn_liburing INTERFACE)
target_link_libraries(cairn_liburing INTERFACE ${LIBURING_LIBRARY})

# Neither does zstd. Only traces need it (src/service/trace); xxhash is a header there.
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
cairn_find_archive(ZSTD_LIBRARY zstd)
add_library(cairn_zstd INTERFACE)
target_link_libraries(cairn_zstd INTERFACE ${ZSTD_LIBRARY})

# libraft agrees on the members of a cluster (src/cluster/membership): its core alone, not its I/O on libuv.
find_path(LIBRAFT_INCLUDE_DIR raft.h REQUIRED)
cairn_find_archive(LIBRAFT_LIBRARY raft)
add_library(cairn_libraft INTERFACE)
target_link_libraries(cairn_libraft INTERFACE ${LIBRAFT_LIBRARY})

# Nor libdeflate, which unpacks chunks of arrays ahead (src/service/gathering). HDF5 does it without.
add_library(cairn_deflate INTERFACE)
find_path(LIBDEFLATE_INCLUDE_DIR libdeflate.h)
if(LIBDEFLATE_INCLUDE_DIR)
  cairn_find_archive(LIBDEFLATE_LIBRARY deflate)
  target_link_libraries(cairn_deflate INTERFACE ${LIBDEFLATE_LIBRARY})
  target_compile_definitions(cairn_deflate INTERFACE CAIRN_HAVE_LIBDEFLATE)
else()
  message(STATUS "no libdeflate (Debian: libdeflate-dev): packed arrays are not unpacked ahead")
endif()

# Eigen and Boost.Math are headers, which only regressions need (src/policy/regressions).
find_package(Eigen3 3.3 REQUIRED NO_MODULE)
find_path(BOOST_MATH_INCLUDE_DIR boost/math/distributions/students_t.hpp REQUIRED)
add_library(cairn_eigen INTERFACE)
target_link_libraries(cairn_eigen INTERFACE Eigen3::Eigen)
