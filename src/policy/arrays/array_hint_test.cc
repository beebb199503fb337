// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/array_hint.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::arrays {
namespace {

ArrayHint hint(const std::string& text) {
  auto parsed = parse_array_hint(text);
  EXPECT_TRUE(parsed) << text << ": " << parsed.status().message();
  return parsed ? *parsed : ArrayHint();
}

std::string fault(const std::string& text) {
  const auto parsed = parse_array_hint(text);
  return parsed ? "" : parsed.status().message();
}

TEST(ArrayHint, SaysWhichDatasetIsReadInWhatChunks) {
  const ArrayHint found = hint("/data/a b.h5:/group/x chunk=[8192,16] ghost=[1,0]");
  EXPECT_EQ(found.file, "/data/a b.h5");
  EXPECT_EQ(found.dataset, "/group/x");
  EXPECT_EQ(found.chunk, (Coordinates{8192, 16}));
  EXPECT_EQ(found.ghost, (Coordinates{1, 0}));
  EXPECT_TRUE(found.check());
  EXPECT_EQ(found.shape().ghost.before, found.shape().ghost.behind);
}

TEST(ArrayHint, TheOrderDoesNotMatterAndAGhostZoneNeedNotBe) {
  EXPECT_EQ(hint("a.h5:/x ghost=[2] chunk=[9]").ghost, (Coordinates{2}));
  EXPECT_EQ(hint("a.h5:/x   chunk=[9,9,9] ").ghost, (Coordinates{0, 0, 0}));
  // A colon of the file's own, and a dataset with blanks.
  const ArrayHint found = hint("run:7/a.h5:/my data chunk=[9]");
  EXPECT_EQ(found.file, "run:7/a.h5");
  EXPECT_EQ(found.dataset, "/my data");
  EXPECT_EQ(hint("a.h5:/group/of=[1] chunk=[9]").dataset, "/group/of=[1]");
}

TEST(ArrayHint, IsMadeOfItsText) {
  ArrayHint found = hint("a.h5:/x chunk=[9,8]");
  found.file = "/data/a.h5";
  EXPECT_EQ(text_of(found), "/data/a.h5:/x chunk=[9,8] ghost=[0,0]");
  EXPECT_EQ(hint(text_of(found)).chunk, found.chunk);
}

TEST(ArrayHint, WhatIsNoHintIsNamed) {
  EXPECT_NE(fault("").find("there is no \"chunk=\""), std::string::npos);
  EXPECT_NE(fault("a.h5:/x").find("there is no \"chunk=\""), std::string::npos);
  EXPECT_NE(fault("a.h5:/x ghost=[1]").find("there is no \"chunk=\""), std::string::npos);
  for (const std::string word : {"ghost", "gohst=[1]", "Chunk=[4]", "order=C"}) {
    const std::string what = "\"" + word + "\" is neither \"chunk=[...]\" nor \"ghost=[...]\"";
    EXPECT_NE(fault("a.h5:/x chunk=[8] " + word).find(what), std::string::npos) << word;
  }
  for (const std::string word : {"gohst=[1]", "chunks=[4]"}) {
    EXPECT_NE(fault("a.h5:/x " + word).find("\"" + word + "\" is neither"), std::string::npos);
    EXPECT_NE(fault("a.h5:/x " + word + " chunk=[8]").find("is neither"), std::string::npos);
  }
  EXPECT_NE(fault("a.h5:/x chunk=[8, 4]").find("a list has no blanks"), std::string::npos);
  EXPECT_NE(fault("a.h5:/x chunk=[8,4] ghost=[1, 1]").find("no blanks"), std::string::npos);
  EXPECT_NE(fault("a.h5 chunk=[8]").find("no file and dataset"), std::string::npos);
  EXPECT_NE(fault(":/x chunk=[8]").find("no file and dataset"), std::string::npos);
  for (const char* numbers : {"8", "[]", "[8", "8]", "[8,]", "[,8]", "[-1]", "[8;8]", "[8 8]",
                              "[18446744073709551616]", "[a]", "[8,8],"}) {
    EXPECT_NE(fault(std::string("a.h5:/x chunk=") + numbers), "") << numbers;
  }
  EXPECT_NE(fault("a.h5:/x chunk=[8] chunk=[9]").find("twice"), std::string::npos);
  std::string many = "a.h5:/x chunk=[1";
  for (int at = 0; at < 32; ++at) many += ",1";
  EXPECT_NE(fault(many + "]"), "");
}

TEST(ArrayHint, NumbersThatCannotBeAreNamedBeforeTheArrayIsKnown) {
  const auto checked = [](const std::string& text) { return hint(text).check().message(); };
  EXPECT_NE(checked("a.h5:/x chunk=[0,8]").find("chunk of 0 cells in dimension 0"),
            std::string::npos);
  EXPECT_NE(checked("a.h5:/x chunk=[8,8] ghost=[1,9]").find("wider than a chunk"),
            std::string::npos);
  EXPECT_NE(checked("a.h5:/x chunk=[8,8] ghost=[1]").find("one for each dimension"),
            std::string::npos);
  std::string many = "a.h5:/x chunk=[1";
  for (std::size_t at = 1; at < kDimensionsMax; ++at) many += ",1";
  EXPECT_EQ(checked(many + "]"), "");
}

}  // namespace
}  // namespace cairn::arrays
