# SPDX-License-Identifier: Apache-2.0
#
# The one table of modules, bottom first: a folder of src/, and the modules directly below it that it may use.
# What a module may include is the closure of its DEPS. CMake makes the targets from this table and
# tools/layer_check.py judges every #include by it, so the two cannot disagree.
#
#   cairn_module(NAME [DEPS module...]        what it stands on
#                     [MAY_INCLUDE header...]  single headers of a module that is not below it
#                     [LIBRARIES target...]    third-party libraries (none for what the preload library links)
#                     [SUBDIRS folder...]      subfolders whose sources belong to the module
#                     [NO_EXCEPTIONS])         compiled as code that lives inside other people's programs

cairn_module(base                              NO_EXCEPTIONS)
cairn_module(arena       DEPS base             NO_EXCEPTIONS)
cairn_module(catalog     DEPS arena            NO_EXCEPTIONS)
cairn_module(pool        DEPS catalog          NO_EXCEPTIONS)
cairn_module(backing     DEPS pool             NO_EXCEPTIONS)
cairn_module(tiers       DEPS backing          NO_EXCEPTIONS)
cairn_module(flush       DEPS tiers            NO_EXCEPTIONS)
cairn_module(placement   DEPS flush            NO_EXCEPTIONS)
cairn_module(replacement DEPS placement        NO_EXCEPTIONS)
cairn_module(organizer   DEPS replacement      NO_EXCEPTIONS)
cairn_module(prefetch    DEPS organizer        NO_EXCEPTIONS)
cairn_module(buffer      DEPS prefetch         NO_EXCEPTIONS)
cairn_module(client      DEPS buffer           NO_EXCEPTIONS)
cairn_module(frontends   DEPS client SUBDIRS common NO_EXCEPTIONS)

# Only the node service and the command line may use third-party libraries and threads.
cairn_module(tiers_uring DEPS tiers LIBRARIES cairn_liburing)
cairn_module(profiler    DEPS base
             LIBRARIES fmt::fmt-header-only nlohmann_json::nlohmann_json cairn_liburing Threads::Threads)
# src/rules/xml is a shared object of its own that links libxml2 (cmake/schema_xml.cmake).
cairn_module(heat        DEPS base)
cairn_module(orders      DEPS base)
cairn_module(trace       DEPS base LIBRARIES cairn_zstd)
cairn_module(rules       DEPS base LIBRARIES fmt::fmt-header-only cairn_yaml)
cairn_module(plugins     DEPS prefetch LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
cairn_module(node        DEPS buffer tiers_uring profiler plugins rules heat orders trace MAY_INCLUDE client/protocol.h
             LIBRARIES fmt::fmt-header-only spdlog::spdlog_header_only cairn_yaml nlohmann_json::nlohmann_json
             cairn_liburing Threads::Threads)
