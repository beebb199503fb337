// SPDX-License-Identifier: Apache-2.0
#include "base/byte_text.h"

#include <gtest/gtest.h>

#include <random>

namespace cairn {
namespace {

TEST(ByteText, Utf8StaysAsItIs) {
  for (const char* text :
       {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(text_of_bytes(text), text);
}

TEST(ByteText, OtherBytesAreWrittenOut) {
  EXPECT_EQ(text_of_bytes("a\xff"), std::string("a\0ff", 4));
  EXPECT_EQ(text_of_bytes("\xc3"), std::string("\0c3", 3)) << "half a character";
  EXPECT_EQ(text_of_bytes("\xc0\x80"), std::string("\0c0\0"
                                                   "80",
                                                   6))
      << "too long a form";
  EXPECT_EQ(text_of_bytes("\xed\xa0\x80"), std::string("\0ed\0a0\0"
                                                       "80",
                                                       9))
      << "a surrogate";
  EXPECT_EQ(text_of_bytes("\xf4\x90\x80\x80"), std::string("\0f4\0"
                                                           "90\0"
                                                           "80\0"
                                                           "80",
                                                           12))
      << "no code point";
}

TEST(ByteText, AnyBytesComeBack) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 20, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 255 + 1);
    EXPECT_EQ(bytes_of_text(text_of_bytes(bytes)), bytes);
  }
}

TEST(ByteText, WhatIsNoEscapeStays) {
  for (const std::string& text :
       {std::string("\0", 1), std::string("\0f", 2), std::string("a\0zz", 4)})
    EXPECT_EQ(bytes_of_text(text), text);
}

}  // namespace
}  // namespace cairn
