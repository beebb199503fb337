// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/name_change.h"

#include <gtest/gtest.h>

#include "base/random_source.h"

namespace cairn::durable {
namespace {

NamedFile file(std::uint64_t inode, std::size_t handle_bytes) {
  return {{inode, static_cast<std::int64_t>(inode) * 7},
          std::vector<std::byte>(handle_bytes, std::byte{static_cast<unsigned char>(inode)})};
}

std::vector<NameChange> samples() {
  NameChange made{"made", std::nullopt, file(5, 12), true, 0640, 10, 20};
  NameChange replaced{std::string(kNameBytesMax, 'x'), file(6, 0), file(7, 132), false, 0, 0, 0};
  NameChange removed{"removed", file(8, 12)};
  NameChange passed{"passed"};
  return {made, replaced, removed, passed};
}

TEST(NameChange, IsReadAsItWasWritten) {
  const auto bytes = encode_names(samples());
  const auto read = decode_names(bytes);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, samples());
}

TEST(NameChange, ATornOneIsNone) {
  const auto bytes = encode_names(samples());
  std::size_t whole = 0;
  for (std::size_t length = 0; length < bytes.size(); ++length)
    whole += decode_names(std::span(bytes).first(length)).has_value() ? 1 : 0;
  EXPECT_EQ(whole, samples().size()) << "between two changes alone it may end";
}

TEST(NameChange, ANameThatLeadsElsewhereIsNone) {
  for (const char* name : {"..", ".", "a/b", ""}) {
    NameChange change{"abc"};
    auto bytes = encode_names(std::span(&change, 1));
    const std::string text = name;
    bytes[0] = static_cast<std::byte>(text.size());
    bytes.resize(8 + text.size());
    for (std::size_t at = 0; at < text.size(); ++at)
      bytes[8 + at] = static_cast<std::byte>(text[at]);
    EXPECT_FALSE(decode_names(bytes).has_value()) << name;
  }
}

TEST(NameChange, DamageIsTakenForNothingWorse) {
  RandomSource random(11);
  for (int turn = 0; turn < 20'000; ++turn) {
    auto bytes = encode_names(samples());
    for (std::uint64_t left = 1 + random.below(4); left > 0; --left)
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
    const auto read = decode_names(bytes);
    if (!read) continue;
    for (const NameChange& change : *read) {
      ASSERT_FALSE(change.name.empty());
      ASSERT_EQ(change.name.find('/'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace cairn::durable
