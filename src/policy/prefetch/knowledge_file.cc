// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/knowledge_file.h"

#include <algorithm>

#include "base/ids.h"
#include "base/kept_file.h"
#include "policy/prefetch/predictors.h"

namespace cairn {
namespace {

// Fixed by the version.
struct KnowledgeHeader {
  std::uint64_t key = 0;
  std::uint64_t predictors = 0;
  PredictorScores scores{};
  float blocks_ahead = 0;
  std::uint32_t entries = 0;
};
static_assert(sizeof(KnowledgeHeader) == 24 + 4 * kPredictorsMax);

constexpr std::size_t kEntryBytes = 12;
constexpr KeptKind kKind{.noun = "file of read orders",
                         .magic = "CAIRNORD",
                         .version = 1,
                         .value_min = sizeof(KnowledgeHeader),
                         .bytes_max = kKnowledgeFileBytesMax};
static_assert(kKind.magic.size() + 4 + sizeof(KnowledgeHeader) + 8 +
                  kEntryBytes * KnowledgeOptions{}.history_entries_max <=
              kKnowledgeFileBytesMax);

// The file identifies scores by their places in the table.
std::uint64_t sum_of_predictors() {
  std::string names;
  for (const PredictorMaker& maker : kPredictorMakers) names.append(maker.name).append(" ");
  return fnv1a(names);
}

bool is_share(float score) { return score >= 0 && score <= 1; }

// A stretch, a link or an end; which of them it is the history sees.
bool can_be(const BlockRun& entry) {
  constexpr auto kBlocksMax = static_cast<std::int64_t>(kOffsetMax / kBlockBytes);
  return entry.first >= -1 && entry.first <= kBlocksMax;
}

}  // namespace

std::string encode_knowledge(std::uint64_t key, const FileKnowledge& file) {
  const std::vector<BlockRun>& entries = file.history.entries();
  KnowledgeHeader header;
  header.key = key;
  header.predictors = sum_of_predictors();
  header.scores = file.scores;
  header.blocks_ahead = file.lookahead.blocks();
  header.entries = static_cast<std::uint32_t>(entries.size());
  std::string value;
  value.reserve(sizeof(header) + kEntryBytes * entries.size());
  append_bytes(&value, header);
  for (const BlockRun& entry : entries) {
    append_bytes(&value, entry.first);
    append_bytes(&value, entry.count);
  }
  return seal(kKind, value);
}

Status decode_knowledge(std::string_view bytes, std::uint64_t key, FileKnowledge* file) {
  const auto value = unseal(kKind, bytes);
  if (!value) return value.status();
  KeptReader reader(*value);
  const auto header = reader.take<KnowledgeHeader>();
  if (header.key != key) return {StatusCode::kIncompatible, "is about another file"};
  if (header.predictors != sum_of_predictors())
    return {StatusCode::kIncompatible, "is from a Cairn with other predictors"};
  if (reader.left() != kEntryBytes * header.entries ||
      !std::all_of(header.scores.begin(), header.scores.end(), is_share)) {
    return {StatusCode::kInvalid, "has values that cannot be"};
  }
  std::vector<BlockRun> entries(header.entries);
  for (BlockRun& entry : entries) {
    entry.first = reader.take<std::int64_t>();
    entry.count = reader.take<std::uint32_t>();
    if (!can_be(entry)) return {StatusCode::kInvalid, "has values that cannot be"};
  }
  if (!file->history.restore(entries))
    return {StatusCode::kExhausted, "has more entries than there is room for"};
  file->scores = header.scores;
  file->lookahead.restore(header.blocks_ahead);
  return Status::ok();
}

Status save_knowledge(const std::string& path, std::uint64_t key, const FileKnowledge& file) {
  return save_kept(path, encode_knowledge(key, file));
}

Status load_knowledge(const std::string& path, std::uint64_t key, FileKnowledge* file) {
  const auto bytes = load_kept(kKind, path);
  if (!bytes) return bytes.status();
  const Status status = decode_knowledge(*bytes, key, file);
  return status ? status : Status(status.code(), path + ": " + status.message());
}

}  // namespace cairn
