// SPDX-License-Identifier: Apache-2.0
#include "base/user_copy.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

namespace cairn {
namespace {

#if defined(CAIRN_USER_COPY) && !defined(CAIRN_ASAN)
constexpr std::size_t kPage = 4096;

void on_fault(int signal, siginfo_t*, void* context) {
  if (recover_from_fault(context)) return;
  ::signal(signal, SIG_DFL);
}

// Two pages that are there, one that is not, and one more that is.
class UserCopy : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) tune_user_copy();
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(sigaction(SIGSEGV, &action, &before_), 0);
    pages_ = static_cast<char*>(
        mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages_, MAP_FAILED);
    std::fill_n(pages_, 4 * kPage, '-');
    ASSERT_EQ(mprotect(hole(), kPage, PROT_NONE), 0);
  }
  void TearDown() override {
    munmap(pages_, 4 * kPage);
    sigaction(SIGSEGV, &before_, nullptr);
  }
  char* hole() const { return pages_ + 2 * kPage; }

  static std::string text_of(std::size_t length) {
    std::string text(length, ' ');
    for (std::size_t at = 0; at < length; ++at) text[at] = static_cast<char>('a' + at * 7 % 26);
    return text;
  }

  char* pages_ = nullptr;
  struct sigaction before_ = {};
};

const std::vector<std::size_t> kLengths = {0,   1,   2,   3,   4,   7,   8,    9,    15,   16,
                                           17,  31,  32,  33,  63,  64,  65,   100,  127,  128,
                                           129, 255, 256, 257, 300, 511, 1000, 2111, 2112, 5000};

TEST_P(UserCopy, CopiesWhatItIsAskedToAndNothingElse) {
  for (const std::size_t length : kLengths) {
    for (const std::size_t skew : {0, 1, 16, 63}) {
      const std::string text = text_of(length);
      std::string out(length + skew + 2, '-');
      EXPECT_EQ(user_copy(out.data() + skew + 1, text.data(), length), 0U);
      EXPECT_EQ(out, std::string(skew + 1, '-') + text + "-") << length << " " << skew;
      if (length < 128) continue;
      std::fill(out.begin(), out.end(), '-');
      EXPECT_EQ(user_copy_streaming(out.data() + skew + 1, text.data(), length), 0U);
      EXPECT_EQ(out, std::string(skew + 1, '-') + text + "-") << length << " " << skew;
    }
  }
}

TEST_P(UserCopy, EndsWhereTheDestinationEnds) {
  for (const std::size_t length : kLengths) {
    for (const std::size_t there : {0, 1, 5, 31, 64, 130, 3000}) {
      if (there >= length) continue;
      const std::string text = text_of(length);
      char* out = hole() - there;
      EXPECT_EQ(user_copy(out, text.data(), length), length - there);
      EXPECT_EQ(std::string(out, there), text.substr(0, there)) << length << " " << there;
    }
  }
}

TEST_P(UserCopy, EndsWhereTheSourceEndsAndLeavesTheRestAlone) {
  for (const std::size_t length : kLengths) {
    for (const std::size_t there : {0, 1, 5, 31, 64, 130, 3000}) {
      if (there >= length) continue;
      const std::string text = text_of(there);
      std::copy(text.begin(), text.end(), hole() - there);
      std::string out(length, '-');
      EXPECT_EQ(user_copy(out.data(), hole() - there, length), length - there);
      EXPECT_EQ(out, text + std::string(length - there, '-')) << length << " " << there;
      if (length < 128) continue;
      std::fill(out.begin(), out.end(), '-');
      EXPECT_EQ(user_copy_streaming(out.data(), hole() - there, length), length - there);
      EXPECT_EQ(out, text + std::string(length - there, '-')) << length << " " << there;
    }
  }
}

TEST_P(UserCopy, AHoleInTheMiddleEndsTheCopyToo) {
  const std::string text = text_of(4 * kPage);
  std::fill_n(hole() + kPage, kPage, '-');
  EXPECT_EQ(user_copy(pages_, text.data(), text.size()), 2 * kPage);
  EXPECT_EQ(std::string(pages_, 2 * kPage), text.substr(0, 2 * kPage));
  EXPECT_EQ(std::string(hole() + kPage, kPage), std::string(kPage, '-'));
  EXPECT_EQ(user_zero(pages_, 4 * kPage), 2 * kPage);
  EXPECT_EQ(std::string(pages_, 2 * kPage), std::string(2 * kPage, '\0'));
}

TEST_P(UserCopy, SaysHowMuchCanBeRead) {
  EXPECT_EQ(readable_bytes(hole(), 10), 0U);
  EXPECT_EQ(readable_bytes(hole() - 3, 10), 3U);
  EXPECT_EQ(readable_bytes(pages_ + 1, 10), 10U);
  EXPECT_EQ(readable_bytes(pages_ + 1, 3 * kPage), 2 * kPage - 1);
  int number = 0;
  EXPECT_FALSE(get_user(&number, reinterpret_cast<int*>(hole() - 2)));
  EXPECT_FALSE(put_user(reinterpret_cast<int*>(hole()), number));
  EXPECT_TRUE(put_user(reinterpret_cast<int*>(hole() - 4), 4711));
  EXPECT_TRUE(get_user(&number, reinterpret_cast<int*>(hole() - 4)));
  EXPECT_EQ(number, 4711);
}

INSTANTIATE_TEST_SUITE_P(PlainAndTuned, UserCopy, testing::Bool());
#endif

}  // namespace
}  // namespace cairn
