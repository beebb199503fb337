// SPDX-License-Identifier: Apache-2.0
// A file of read orders: as it is, and sealed with the key and the predictors of this Cairn.
// Knowledge that is taken can be written again.
#include "policy/prefetch/knowledge_file.h"

#include "base/check.h"
#include "base/kept_file.h"
#include "fuzz/fuzz_input.h"

namespace {

constexpr std::uint64_t kKey = 7;
constexpr std::size_t kIdentityBytes = 16;  // the key and the table of predictors

// A file that nothing is known of.
struct Unknown {
  cairn::KnowledgeOptions options;
  cairn::KnowledgeBudget budget{options.file_bytes_max};
  cairn::FileKnowledge file{budget, options, cairn::PredictorScores{}};
};

void read(std::string_view bytes) {
  Unknown first;
  cairn::FileKnowledge& file = first.file;
  if (!cairn::decode_knowledge(bytes, kKey, &file).is_ok()) return;
  const std::string written = cairn::encode_knowledge(kKey, file);
  Unknown second;
  cairn::FileKnowledge& again = second.file;
  CAIRN_CHECK(cairn::decode_knowledge(written, kKey, &again).is_ok());
  CAIRN_CHECK(again.history.entries().size() == file.history.entries().size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const cairn::fuzz::FuzzInput input(data, size);
  read(input.rest());
  const std::string whole = cairn::encode_knowledge(kKey, Unknown().file);
  const cairn::KeptKind kind{.noun = "",
                             .magic = "CAIRNORD",
                             .version = 1,
                             .value_min = 0,
                             .bytes_max = cairn::kKnowledgeFileBytesMax};
  std::string value(cairn::unseal(kind, whole)->substr(0, kIdentityBytes));
  value += input.rest();
  read(cairn::seal(kind, value));
  return 0;
}
