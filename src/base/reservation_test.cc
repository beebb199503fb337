// SPDX-License-Identifier: Apache-2.0
#include "base/reservation.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Reservation, IsASizeOrATierAndASize) {
  EXPECT_EQ(parse_reservation("4M"), (Reservation{"", 4 << 20}));
  EXPECT_EQ(parse_reservation("nvme-2:1G"), (Reservation{"nvme-2", 1 << 30}));
  EXPECT_EQ(parse_reservation("0"), (Reservation{"", 0}));
  for (const char* text : {"", "much", "ram:", ":4M", "ram=4M", "a b:4M", "ram:4M:5M", "-1"})
    EXPECT_FALSE(parse_reservation(text)) << text;
}

TEST(Reservation, ItsTextIsReadAgain) {
  for (const char* text : {"4M", "nvme:10G", "0", "ram:4097"})
    EXPECT_EQ(reservation_text(*parse_reservation(text)), text);
}

}  // namespace
}  // namespace cairn
