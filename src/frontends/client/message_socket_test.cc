// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/message_socket.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>

namespace cairn {
namespace {

TEST(MessageSocket, HintsLeaveRoomForMessagesThatWait) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
  const timeval second{1, 0};
  ASSERT_EQ(::setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second), 0);
  const std::array<char, 256> message{};
  unsigned hints = 0;
  while (hints < 100'000 && send_hint(ends[0], message.data(), message.size()) == 0) ++hints;
  EXPECT_GT(hints, 10u);
  EXPECT_EQ(send_hint(ends[0], message.data(), message.size()), -EAGAIN);
  for (unsigned sent = 0; sent < hints / 2; ++sent)
    ASSERT_EQ(send_message(ends[0], message.data(), message.size(), -1), 0) << sent;
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace cairn
