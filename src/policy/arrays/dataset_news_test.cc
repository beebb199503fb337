// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/dataset_news.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::arrays {
namespace {

TEST(DatasetNews, AreOfTheDatasetOfTheirName) {
  DatasetNews news;
  news.name = "/group/density";
  EXPECT_TRUE(news.is_named("/group/density"));
  EXPECT_FALSE(news.is_named("/density"));
}

TEST(DatasetNews, ALongNameIsMeantByAllOfItAndAsItIsShown) {
  DatasetNews news;
  news.name = "..." + std::string(100, 'g') + "/density";
  EXPECT_TRUE(news.is_named("/" + std::string(120, 'g') + "/density"));
  EXPECT_TRUE(news.is_named(news.name));
  EXPECT_FALSE(news.is_named("/" + std::string(120, 'g') + "/entropy"));
  EXPECT_FALSE(news.is_named("/density"));
}

}  // namespace
}  // namespace cairn::arrays
