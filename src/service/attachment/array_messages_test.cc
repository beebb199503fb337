// SPDX-License-Identifier: Apache-2.0
// What a client may say of arrays, and what not.
#include "service/attachment/testing/array_messages.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "service/attachment/client_message.h"

namespace cairn::node {
namespace {

constexpr std::uint32_t kLiveFile = 3;
constexpr std::uint32_t kFreeFile = 4;

class ArrayMessages : public ::testing::Test {
 protected:
  ArrayMessages() { objects_[kLiveFile].set(kObjectLive); }

  template <typename Message>
  ClientMessage decoded_of(const Message& message) const {
    Datagram datagram;
    datagram.length = sizeof message;
    std::memcpy(datagram.bytes, &message, sizeof message);
    return node::decode(std::move(datagram), table_, 32);
  }
  template <typename Message>
  bool is_malformed(const Message& message) const {
    return std::holds_alternative<message::Malformed>(decoded_of(message));
  }

  std::array<Object, 16> objects_{};
  ObjectBoard board_{};
  UnservedBoard unserved_{};
  ObjectTable table_{objects_.data(), 16, HashLines(), &board_, &unserved_};
};

TEST_F(ArrayMessages, ABoxIsOneOfItsArray) {
  const auto decoded = decoded_of(testing::array_read(kLiveFile));
  const auto& read = std::get<message::ArrayRead>(decoded);
  EXPECT_EQ(read.array, (arrays::FileArray{{8, 4}, 8, 100}));
  EXPECT_EQ(read.box, (arrays::Box{{2, 0}, {2, 4}}));
  EXPECT_FALSE(read.was_kept);
  const auto is_malformed = [this](auto&& change) {
    protocol::ArrayReadMessage message = testing::array_read(kLiveFile);
    change(message);
    return std::holds_alternative<message::Malformed>(decoded_of(message));
  };
  EXPECT_TRUE(is_malformed([](auto& it) { it.object = kFreeFile; }));
  EXPECT_TRUE(is_malformed([](auto& it) { it.dimensions = 0; }));
  EXPECT_TRUE(is_malformed([](auto& it) { it.dimensions = 33; }));
  EXPECT_TRUE(is_malformed([](auto& it) { it.cell_bytes = 0; }));
  EXPECT_TRUE(is_malformed([](auto& it) { it.was_kept = 2; }));
  EXPECT_TRUE(is_malformed([](auto& it) { it.count[0] = 0; }));
  EXPECT_TRUE(is_malformed([](auto& it) { it.first[0] = 7; })) << "beyond the last row";
  EXPECT_TRUE(is_malformed([](auto& it) { it.first[0] = UINT64_MAX; })) << "which wraps";
  EXPECT_TRUE(is_malformed([](auto& it) { it.shape[0] = std::uint64_t{1} << 61; }));
  EXPECT_TRUE(is_malformed([](auto& it) { it.offset = UINT64_MAX; }));
}

TEST_F(ArrayMessages, APackedBoxIsOfAnArrayThatMayBeUnpacked) {
  const auto decoded = decoded_of(testing::packed_read(kLiveFile));
  const auto* read = std::get_if<message::PackedRead>(&decoded);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->array.shape, (arrays::Coordinates{8, 4}));
  EXPECT_EQ(read->array.chunk, (arrays::Coordinates{3, 4}));
  EXPECT_EQ(read->array.token[0], 800u);
  EXPECT_EQ(read->array.filters, *arrays::FilterList::of(std::array{2U, 1U}));
  EXPECT_EQ(read->box, (arrays::Box{{2, 0}, {2, 4}}));
  const std::vector<void (*)(protocol::PackedReadMessage*)> damages = {
      [](auto* it) { it->object = kFreeFile; },
      [](auto* it) { it->dimensions = 0; },
      [](auto* it) { it->dimensions = 33; },
      [](auto* it) { it->filters[0] = 0; },
      [](auto* it) { it->filters[0] = 1; },  // twice
      [](auto* it) { it->filters[2] = 4; },
      [](auto* it) { it->cell_bytes = 0; },
      [](auto* it) { it->cell_bytes = UINT64_MAX; },
      [](auto* it) { it->shape[0] = 0; },
      [](auto* it) { it->shape[0] = std::uint64_t{1} << 61; },
      [](auto* it) { it->shape[0] = std::uint64_t{1} << 20; },  // too many chunks
      [](auto* it) { it->chunk[0] = 0; },
      [](auto* it) { it->chunk[0] = UINT64_MAX; },
      [](auto* it) { it->chunk[1] = std::uint64_t{1} << 20; },  // too large
      [](auto* it) { it->count[0] = 0; },
      [](auto* it) { it->first[0] = 7; },
      [](auto* it) { it->first[0] = UINT64_MAX; }};
  for (std::size_t at = 0; at < damages.size(); ++at) {
    protocol::PackedReadMessage message = testing::packed_read(kLiveFile);
    damages[at](&message);
    EXPECT_TRUE(is_malformed(message)) << at;
  }
}

TEST_F(ArrayMessages, NewsOfAnArrayAreOfOneThatMayBe) {
  const auto decoded = decoded_of(testing::array_news(kLiveFile));
  const auto* told = std::get_if<message::ArrayNews>(&decoded);
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->news.name, "/group/x");
  EXPECT_EQ(told->news.layout, arrays::Layout::kChunked);
  EXPECT_EQ(told->news.shape, (arrays::Coordinates{8, 4}));
  EXPECT_EQ(told->news.chunk, (arrays::Coordinates{3, 4}));
  EXPECT_EQ(told->news.filters, (std::vector<std::uint32_t>{2, 1}));
  EXPECT_EQ(told->news.token[0], 800u);
  EXPECT_EQ(told->news.served_reads, 5u);
  EXPECT_EQ(told->news.served_bytes, 256u);
  EXPECT_EQ(told->news.all_left(), 3u);
  const std::vector<void (*)(protocol::ArrayNewsMessage*)> damages = {
      [](auto* news) { news->object = kFreeFile; },
      [](auto* news) { news->dimensions = 33; },
      [](auto* news) { news->has_chunks = 2; },
      [](auto* news) { news->layout = 3; },
      [](auto* news) { news->layout = 1; },  // has no chunks
      [](auto* news) { news->unfit = 12; },  // a reason of single reads
      [](auto* news) { news->unfit = 0x80000000; },
      [](auto* news) { news->cell_bytes = 0; },
      [](auto* news) { news->shape[1] = 0; },
      [](auto* news) { news->shape[0] = UINT64_MAX; },
      [](auto* news) { news->chunk[0] = 0; },
      [](auto* news) { news->chunk[1] = UINT64_MAX; },
      [](auto* news) { std::memset(news->name, 'a', sizeof news->name); }};
  for (std::size_t at = 0; at < damages.size(); ++at) {
    protocol::ArrayNewsMessage message = testing::array_news(kLiveFile);
    damages[at](&message);
    EXPECT_TRUE(is_malformed(message)) << at;
  }
  // A client need not know its shape.
  protocol::ArrayNewsMessage bare = testing::array_news(kLiveFile);
  bare.dimensions = 0;
  bare.cell_bytes = 0;
  EXPECT_FALSE(is_malformed(bare));
}

}  // namespace
}  // namespace cairn::node
