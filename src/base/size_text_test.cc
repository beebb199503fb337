// SPDX-License-Identifier: Apache-2.0
#include "base/size_text.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(SizeText, ParsesBinarySuffixes) {
  EXPECT_EQ(parse_size("0"), 0U);
  EXPECT_EQ(parse_size("4096"), 4096U);
  EXPECT_EQ(parse_size("64k"), 65536U);
  EXPECT_EQ(parse_size("64M"), uint64_t{64} << 20);
  EXPECT_EQ(parse_size("1.5 GiB"), uint64_t{3} << 29);
  EXPECT_EQ(parse_size(" 2TB "), uint64_t{2} << 40);
  EXPECT_EQ(parse_size("7E"), uint64_t{7} << 60);
}

TEST(SizeText, RefusesWhatIsNoSize) {
  for (const char* text : {"", "G", "-1", "+1", "1.5", "1.", ".5G", "4 G G", "4Q", "0x10", "8E",
                           "1e3", "99999999999999999999", "9223372036854775808"}) {
    EXPECT_FALSE(parse_size(text).has_value()) << text;
  }
}

TEST(SizeText, ExactFormParsesToTheSame) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1024}, uint64_t{1536} << 20,
                               (uint64_t{1} << 40) + 1, uint64_t{5} << 60}) {
    EXPECT_EQ(parse_size(format_size_exact(bytes)), bytes);
  }
  EXPECT_EQ(format_size_exact(uint64_t{1536} << 20), "1536M");
}

TEST(SizeText, SizesReadWell) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(999), "999 B");
  EXPECT_EQ(format_size(1000), "0.98 KiB");
  EXPECT_EQ(format_size(4096), "4 KiB");
  EXPECT_EQ(format_size(uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(format_size(UINT64_MAX), "16 EiB");
}

TEST(SizeText, Durations) {
  EXPECT_EQ(parse_duration_ms("500"), 500U);
  EXPECT_EQ(parse_duration_ms("2s"), 2000U);
  EXPECT_EQ(parse_duration_ms("1.5 s"), 1500U);
  EXPECT_EQ(parse_duration_ms("1min"), 60000U);
  EXPECT_FALSE(parse_duration_ms("soon").has_value());
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(0.0004), "0.4 ms");
  EXPECT_EQ(format_duration(0.25), "250 ms");
  EXPECT_EQ(format_duration(3.214), "3.21 s");
  EXPECT_EQ(format_duration(245), "4 min 05 s");
  EXPECT_EQ(format_duration(7380), "2 h 03 min");
}

}  // namespace
}  // namespace cairn
