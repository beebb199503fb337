// SPDX-License-Identifier: Apache-2.0
// The file `orphaned` of a durable log: any bytes, and words that programs have left whole or torn,
// with rubbish between them. The reader finds each whole word, in order, and nothing else.
#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "service/replay/left_words.h"

namespace {

using cairn::OrphanWord;
using cairn::durable::whole_words;

std::string bytes_of(const OrphanWord& word) {
  return {reinterpret_cast<const char*>(&word), sizeof word};
}

void read_any(std::string_view bytes) {
  const std::vector<OrphanWord> words = whole_words(bytes);
  CAIRN_CHECK(words.size() <= bytes.size() / sizeof(OrphanWord));
  std::size_t from = 0;
  for (const OrphanWord& word : words) {
    CAIRN_CHECK(word.is_whole());
    const std::size_t at = bytes.find(bytes_of(word), from);
    CAIRN_CHECK(at != std::string_view::npos);
    from = at + sizeof word;
  }
}

OrphanWord word_of(cairn::fuzz::FuzzInput& input) {
  OrphanWord word;
  word.log = input.take<std::uint16_t>();
  word.upto = input.take<std::uint32_t>();
  word.store = input.take<std::uint16_t>();
  word.inode = input.take<std::uint32_t>();
  word.birth_ns = input.take<std::uint32_t>();
  word.sum = OrphanWord::sum_of(word);
  return word;
}

// The bytes of a word that a crash has cut off, and one that does not go on with it.
std::string torn(const OrphanWord& word, std::size_t length) {
  const std::string bytes = bytes_of(word);
  return bytes.substr(0, length) + static_cast<char>(~bytes[length]);
}

// No word begins in it.
std::string rubbish_of(cairn::fuzz::FuzzInput& input, std::size_t most) {
  std::string rubbish(input.take_bytes(most));
  for (char& byte : rubbish) byte = static_cast<char>(byte & 0x7f);
  return rubbish;
}

void read_made(cairn::fuzz::FuzzInput& input) {
  std::string bytes;
  std::vector<OrphanWord> left;
  while (!input.is_at_end()) {
    const auto how = input.take<std::uint8_t>();
    const OrphanWord word = word_of(input);
    if (how % 4 == 0) {
      bytes += rubbish_of(input, how / 4U);
    } else if (how % 4 == 1) {
      bytes += torn(word, how / 4U % sizeof word);
    } else {
      left.push_back(word);
      bytes += bytes_of(word);
    }
  }
  const std::vector<OrphanWord> found = whole_words(bytes);
  CAIRN_CHECK(found.size() == left.size());
  for (std::size_t at = 0; at < left.size(); ++at)
    CAIRN_CHECK(bytes_of(found[at]) == bytes_of(left[at]));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cairn::fuzz::FuzzInput input(data, size);
  read_any(input.rest());
  read_made(input);
  return 0;
}
