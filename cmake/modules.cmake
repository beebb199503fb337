# SPDX-License-Identifier: Apache-2.0
#
# The one table of modules, bottom first. A module is a room of src/, named WING/ROOM; every module stands on base. DEPS
# are all other modules that its files include: tools/layer_check.py refuses an include of a module that does not stand
# here, and a module here that no file includes. CMake makes the targets from the same table.
#
#   service       what runs beside the programs; of the front ends it knows the protocol alone
#   cluster       what joins services of many nodes: messages, members, who answers for what; stands on base alone
#   frontends     what programs meet; stands on memory, and on what decides about arrays
#   policy        what decides: pure, so it stands on base alone
#   memory        where bytes live
#   base          words and primitives
#
#   cairn_module(NAME [DEPS module...]        what its files include
#                     [LIBRARIES target...]   third-party libraries (none for what the preload library links)
#                     [NEEDS variable]        not built where the variable is off
#                     [NO_EXCEPTIONS]         compiled as code that lives inside other people's programs
#                     [HOOKS])                its sources are the preload library's own (cmake/preload.cmake)

cairn_module(base NO_EXCEPTIONS)

cairn_module(memory/arena   NO_EXCEPTIONS)
cairn_module(memory/catalog NO_EXCEPTIONS DEPS memory/arena)
cairn_module(memory/pool    NO_EXCEPTIONS DEPS memory/arena memory/catalog)
cairn_module(memory/tiers   NO_EXCEPTIONS DEPS memory/arena memory/catalog memory/pool)
# The one file for processors with AVX2, which it asks for (page_sums.cc). xxhash is a header.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/memory/tiers/page_hash_avx2.cc PROPERTIES COMPILE_OPTIONS -mavx2)
endif()
cairn_module(memory/backing NO_EXCEPTIONS)
cairn_module(memory/flush   NO_EXCEPTIONS DEPS memory/catalog memory/tiers memory/backing)
cairn_module(memory/buffer  NO_EXCEPTIONS DEPS memory/catalog memory/tiers memory/backing memory/flush)

cairn_module(policy/placement   NO_EXCEPTIONS)
cairn_module(policy/replacement NO_EXCEPTIONS)
cairn_module(policy/prefetch    NO_EXCEPTIONS)
cairn_module(policy/arrays      NO_EXCEPTIONS)
cairn_module(policy/miss_ratios NO_EXCEPTIONS DEPS policy/replacement)
cairn_module(policy/models      NO_EXCEPTIONS)
cairn_module(policy/traffic     NO_EXCEPTIONS)
cairn_module(policy/advice      NO_EXCEPTIONS DEPS policy/miss_ratios)
cairn_module(policy/regressions LIBRARIES cairn_eigen)
cairn_module(policy/orders)
cairn_module(policy/heat)
# policy/rules/xml is a shared object of its own that links libxml2 (cmake/schema_xml.cmake).
cairn_module(policy/rules DEPS policy/arrays LIBRARIES cairn_fmt cairn_yaml)

cairn_module(frontends/protocol NO_EXCEPTIONS DEPS memory/arena memory/tiers)
cairn_module(frontends/client   NO_EXCEPTIONS DEPS memory/tiers memory/buffer frontends/protocol)
cairn_module(frontends/libc     NO_EXCEPTIONS)
cairn_module(frontends/paths    NO_EXCEPTIONS
             DEPS memory/catalog memory/tiers memory/buffer frontends/client)
cairn_module(frontends/descriptors NO_EXCEPTIONS
             DEPS memory/catalog memory/backing memory/buffer frontends/client)
cairn_module(frontends/processes NO_EXCEPTIONS DEPS memory/arena frontends/client frontends/descriptors)
cairn_module(frontends/files    NO_EXCEPTIONS
             DEPS memory/catalog memory/backing memory/buffer
                  frontends/client frontends/libc frontends/paths frontends/descriptors frontends/processes)
cairn_module(frontends/regions  NO_EXCEPTIONS HOOKS
             DEPS memory/tiers memory/backing memory/buffer frontends/client frontends/libc frontends/descriptors
                  frontends/processes frontends/files)
cairn_module(frontends/mpi_interface NO_EXCEPTIONS)
cairn_module(frontends/mpi      NO_EXCEPTIONS HOOKS
             DEPS frontends/mpi_interface frontends/client frontends/libc frontends/paths frontends/processes)
cairn_module(frontends/stdio    NO_EXCEPTIONS HOOKS DEPS frontends/libc frontends/descriptors frontends/files)
cairn_module(frontends/posix    NO_EXCEPTIONS HOOKS
             DEPS memory/backing memory/flush memory/buffer frontends/protocol
                  frontends/client frontends/libc frontends/paths frontends/descriptors frontends/processes
                  frontends/files frontends/stdio)
# HDF5 loads it. Its headers are all that it has of HDF5 (cmake/hdf5.cmake).
cairn_module(frontends/hdf5     NO_EXCEPTIONS NEEDS CAIRN_HAVE_HDF5 LIBRARIES cairn_hdf5_headers
             DEPS policy/arrays frontends/mpi_interface)
# The same, and beside it.
cairn_module(frontends/driver   NO_EXCEPTIONS NEEDS CAIRN_HAVE_HDF5 LIBRARIES cairn_hdf5_headers)

# State machines without threads or clocks, for the node service alone. xxhash is a header.
cairn_module(cluster/placement_map)
cairn_module(cluster/transport)
cairn_module(cluster/membership DEPS cluster/placement_map cluster/transport LIBRARIES cairn_libraft)
cairn_module(cluster/ownership DEPS cluster/placement_map cluster/transport cluster/membership)

# Only the node service and the command line may use third-party libraries and threads.
cairn_module(service/process LIBRARIES cairn_fmt spdlog::spdlog_header_only)
cairn_module(service/keeping DEPS service/process)
cairn_module(service/profiler
             LIBRARIES cairn_fmt nlohmann_json::nlohmann_json cairn_liburing Threads::Threads)
cairn_module(service/training
             DEPS policy/regressions service/profiler LIBRARIES cairn_fmt nlohmann_json::nlohmann_json)
cairn_module(service/trace LIBRARIES cairn_zstd)
# xxhash is a header.
cairn_module(service/durable_log LIBRARIES Threads::Threads)
cairn_module(service/replay DEPS memory/backing memory/flush service/durable_log LIBRARIES cairn_fmt Threads::Threads)
cairn_module(service/plugins
             DEPS policy/placement policy/prefetch
             LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
cairn_module(service/organizer
             DEPS memory/pool memory/tiers policy/placement policy/replacement
             LIBRARIES cairn_liburing Threads::Threads)
cairn_module(service/logged_files
             DEPS memory/catalog memory/tiers memory/backing memory/flush service/process service/durable_log)
cairn_module(service/write_back
             DEPS memory/arena memory/catalog memory/tiers memory/backing memory/flush memory/buffer
                  frontends/protocol service/logged_files service/process service/keeping service/profiler
             LIBRARIES cairn_fmt Threads::Threads)
cairn_module(service/durability
             DEPS frontends/protocol service/process service/logged_files service/write_back
             LIBRARIES cairn_fmt Threads::Threads)
cairn_module(service/attachment
             DEPS memory/arena memory/catalog memory/tiers memory/backing memory/buffer policy/arrays
                  frontends/protocol service/process service/keeping service/write_back
             LIBRARIES Threads::Threads)
cairn_module(service/recovery
             DEPS memory/arena memory/catalog memory/pool memory/tiers memory/buffer service/attachment)
cairn_module(service/rescue
             DEPS memory/tiers memory/flush memory/buffer
                  service/process service/keeping service/write_back service/attachment)
cairn_module(service/learning
             DEPS memory/arena memory/tiers memory/backing policy/heat policy/orders policy/prefetch policy/replacement
                  service/process service/profiler service/trace service/write_back service/attachment
             LIBRARIES cairn_fmt Threads::Threads)
cairn_module(service/capacity
             DEPS memory/tiers policy/placement service/profiler service/plugins service/organizer
                  service/write_back service/attachment service/learning
             LIBRARIES Threads::Threads)
cairn_module(service/treatment
             DEPS memory/tiers memory/backing memory/buffer service/process service/profiler service/write_back
                  service/attachment service/capacity
             LIBRARIES nlohmann_json::nlohmann_json Threads::Threads)
cairn_module(service/fetching
             DEPS memory/tiers memory/backing memory/buffer policy/prefetch service/process service/organizer
                  service/write_back service/learning service/treatment
             LIBRARIES cairn_fmt Threads::Threads)
cairn_module(service/gathering
             DEPS memory/tiers memory/backing memory/buffer policy/arrays service/process service/write_back
                  service/attachment service/fetching
             LIBRARIES cairn_deflate Threads::Threads)
cairn_module(service/sampling
             DEPS memory/tiers service/process service/write_back service/attachment service/durability
                  service/learning service/treatment
             LIBRARIES cairn_fmt nlohmann_json::nlohmann_json Threads::Threads)
cairn_module(service/control
             DEPS memory/tiers memory/buffer policy/arrays service/process service/keeping service/write_back
                  service/attachment service/durability service/learning service/capacity service/treatment
                  service/fetching service/gathering service/sampling
             LIBRARIES cairn_fmt nlohmann_json::nlohmann_json Threads::Threads)
cairn_module(service/node
             DEPS memory/backing memory/tiers policy/replacement service/process service/keeping service/profiler
                  service/recovery service/rescue service/durable_log service/logged_files
                  service/plugins service/replay service/durability service/write_back
                  service/attachment service/learning service/capacity service/treatment service/fetching
                  service/gathering service/sampling service/control
             LIBRARIES cairn_fmt)

get_property(unbuilt_rooms GLOBAL PROPERTY CAIRN_UNBUILT_ROOMS)
file(WRITE ${CMAKE_BINARY_DIR}/unbuilt_rooms.txt "${unbuilt_rooms}")
