// SPDX-License-Identifier: Apache-2.0
// The knowledge of a file as bytes that the next node understands: the order in which it was read,
// how often each predictor was right, how far ahead it had to be read.
//
// Format (base/kept_file.h): "CAIRNORD", then the file's key, the table of predictors, their
// scores, the distance, and the entries of the history (policy/prefetch/access_history.h);
// docs/formats.md has the bytes. Segment chains are not kept: they are small and quickly learned
// anew.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "policy/prefetch/knowledge.h"

namespace cairn {

// No file of knowledge is larger.
inline constexpr std::size_t kKnowledgeFileBytesMax = std::size_t{2} << 20;

// An order with fewer stretches than that is learned within a few reads anyway.
inline constexpr std::size_t kStretchesKeptMin = 16;

std::string encode_knowledge(std::uint64_t key, const FileKnowledge& file);
// Fills `file`, or changes nothing. Errors: those of unseal(); kIncompatible of another file, or of
// a Cairn with other predictors.
Status decode_knowledge(std::string_view bytes, std::uint64_t key, FileKnowledge* file);

Status save_knowledge(const std::string& path, std::uint64_t key, const FileKnowledge& file);
Status load_knowledge(const std::string& path, std::uint64_t key, FileKnowledge* file);

}  // namespace cairn
