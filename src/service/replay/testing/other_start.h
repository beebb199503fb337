// SPDX-License-Identifier: Apache-2.0
// A log as it would be found after the machine was started anew: its words of storing name another
// start.
//
// Thread safety: none. Ownership: nothing is kept.
#pragma once

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "service/durable_log/directory_storage.h"
#include "service/durable_log/record_format.h"
#include "service/durable_log/superblock.h"

namespace cairn::durable {

inline void name_another_start(std::string& segment) {
  const auto bytes = [&] { return std::as_bytes(std::span(segment)); };
  const auto named = decode_log_name(bytes());
  if (!named) return;
  const auto first = decode_segment_header(named->log(), bytes());
  if (!first) return;
  for (std::size_t at = 0; at + kRecordHeaderBytes <= segment.size();) {
    auto header = decode_header(named->log(), first->segment, bytes().subspan(at));
    if (!header) return;
    const bool has_boot_last = header->kind == RecordKind::kStoring ||
                               header->kind == RecordKind::kRenamed ||
                               header->kind == RecordKind::kRemoved;
    if (has_boot_last) header->words[2] ^= 1;
    if (header->kind == RecordKind::kNames) header->words[1] ^= 1;
    const HeaderImage image = encode_header(named->log(), *header);
    std::memcpy(segment.data() + at, image.data(), image.size());
    at += record_bytes(header->payload_bytes);
  }
}

// Requires: the log of `tier` has one segment, and is closed.
inline void start_anew(const std::string& tier) {
  for (const auto& entry : std::filesystem::directory_iterator(tier + "/" + kLogFolder)) {
    if (entry.path().filename() == kSuperblockName) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::string segment((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    name_another_start(segment);
    std::ofstream(entry.path(), std::ios::binary) << segment;
  }
}

}  // namespace cairn::durable
