// SPDX-License-Identifier: Apache-2.0
#include "service/trace/event_columns.h"

#include <gtest/gtest.h>

#include <random>

#include "service/trace/testing/memory_file.h"
#include "service/trace/varint.h"

namespace cairn {
namespace {

std::vector<TraceEvent> decoded(const TraceBytes& bytes, std::size_t count) {
  std::vector<TraceEvent> events;
  EXPECT_TRUE(decode_events(bytes, static_cast<std::uint32_t>(count), &events));
  return events;
}

TEST(Varint, SmallNumbersAreSmallAndTheLargestFits) {
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128},
                                     std::uint64_t{300}, UINT64_MAX - 1, UINT64_MAX}) {
    TraceBytes bytes;
    put_varint(&bytes, number);
    std::span<const std::uint8_t> rest(bytes);
    std::uint64_t taken = 0;
    EXPECT_TRUE(take_varint(&rest, &taken));
    EXPECT_EQ(taken, number);
    EXPECT_TRUE(rest.empty());
  }
  TraceBytes bytes;
  put_varint(&bytes, 300);
  EXPECT_EQ(bytes, (TraceBytes{0xac, 0x02}));
}

TEST(Varint, WhatDoesNotEndOrDoesNotFitIsRefused) {
  const TraceBytes endless(11, 0x80);
  TraceBytes too_large(9, 0xff);
  too_large.push_back(2);
  std::uint64_t number = 0;
  for (const TraceBytes& bytes : {TraceBytes{}, TraceBytes{0x80}, endless, too_large}) {
    std::span<const std::uint8_t> rest(bytes);
    EXPECT_FALSE(take_varint(&rest, &number));
  }
}

TEST(Varint, DifferencesOfEitherSignAreSmall) {
  EXPECT_EQ(fold_sign(0), 0U);
  EXPECT_EQ(fold_sign(UINT64_MAX), 1U);
  EXPECT_EQ(fold_sign(1), 2U);
  EXPECT_EQ(fold_sign_32(UINT32_MAX), 1U);
  for (const std::uint64_t number : {std::uint64_t{5}, std::uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_EQ(unfold_sign(fold_sign(number)), number);
    const auto half = static_cast<std::uint32_t>(number);
    EXPECT_EQ(unfold_sign_32(fold_sign_32(half)), half);
  }
}

// Two reads one behind the other and a write before them, worked out by hand.
TEST(EventColumns, TheBytesAreTheseForever) {
  const std::vector<TraceEvent> events = {
      {100, 4096, 4096, 1, 0, 7, TraceKind::kReadMiss},
      {350, 8192, 4096, 1, 0, 7, TraceKind::kReadPrefetched},
      {340, 0, 10, 0, 1, 7, TraceKind::kWrite},
  };
  const TraceBytes bytes = {
      0x02, 0x04, 0x05,              // kinds
      0xc8, 0x01, 0xf4, 0x03, 0x13,  // +100, +250, -10
      0x02, 0x00, 0x01,              // files: +1, 0, -1
      0x00, 0x00, 0x02,              // processes: 0, 0, +1
      0x0e, 0x00, 0x00,              // streams: +7, 0, 0
      0x80, 0x40, 0x00, 0x00,        // offsets: 4096, as expected, as expected
      0x80, 0x40, 0x00, 0x14,        // lengths: 4096, as before, 10
  };
  EXPECT_EQ(encode_events(events), bytes);
  EXPECT_EQ(decoded(bytes, events.size()), events);
}

TEST(EventColumns, ExtremesComeBack) {
  TraceEvent largest{UINT64_MAX, UINT64_MAX, UINT32_MAX,        UINT32_MAX,
                     UINT32_MAX, UINT32_MAX, TraceKind::kAdvice};
  std::vector<TraceEvent> events = {largest, TraceEvent{}, largest, TraceEvent{}, largest};
  EXPECT_EQ(decoded(encode_events(events), events.size()), events);
  EXPECT_EQ(decoded({}, 0), std::vector<TraceEvent>{});
}

TEST(EventColumns, RandomEventsComeBack) {
  std::mt19937_64 random(printed_seed());
  for (int round = 0; round < 200; ++round) {
    const auto events = random_events(&random, random() % 3000, 5, 3);
    ASSERT_EQ(decoded(encode_events(events), events.size()), events);
  }
}

TEST(EventColumns, AnotherNumberOfEventsIsRefused) {
  std::mt19937_64 random(printed_seed());
  const auto events = random_events(&random, 100, 5, 3);
  const TraceBytes bytes = encode_events(events);
  std::vector<TraceEvent> read;
  EXPECT_FALSE(decode_events(bytes, 99, &read));
  EXPECT_FALSE(decode_events(bytes, 101, &read));
  EXPECT_FALSE(decode_events(bytes, UINT32_MAX, &read)) << "and no room is made for them";
}

TEST(EventColumns, RandomBytesDoNoHarm) {
  std::mt19937_64 random(printed_seed());
  std::vector<TraceEvent> events;
  std::vector<NewName> names;
  for (int round = 0; round < 20'000; ++round) {
    TraceBytes bytes(random() % 200);
    // Small bytes, or hardly anything would get past the kinds.
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(random() % (random() % 8 == 0 ? 256 : 7));
    }
    (void)decode_events(bytes, static_cast<std::uint32_t>(random() % 30), &events);
    (void)decode_names(bytes, static_cast<std::uint32_t>(random() % 30), &names);
  }
}

TEST(EventColumns, NamesComeBack) {
  TraceBytes bytes;
  encode_name(&bytes, false, "/data/train.bin");
  encode_name(&bytes, true, "");
  encode_name(&bytes, true, std::string(300, 'x'));
  std::vector<NewName> names;
  ASSERT_TRUE(decode_names(bytes, 3, &names));
  const std::vector<NewName> expected = {
      {false, "/data/train.bin"}, {true, ""}, {true, std::string(300, 'x')}};
  EXPECT_EQ(names, expected);
  EXPECT_FALSE(decode_names(bytes, 2, &names));
  EXPECT_FALSE(decode_names(bytes, 4, &names));
  bytes[0] = 2;
  EXPECT_FALSE(decode_names(bytes, 3, &names)) << "neither a file nor a process";
}

}  // namespace
}  // namespace cairn
