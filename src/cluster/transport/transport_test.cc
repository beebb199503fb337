// SPDX-License-Identifier: Apache-2.0
// Frames, and what holds with every transport (transport.h).
#include "cluster/transport/transport.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/transport/frame.h"
#include "cluster/transport/loopback.h"
#include "cluster/transport/testing/simulated_network.h"

namespace cairn::cluster {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr NodeId kFirst{1};
constexpr NodeId kOther{2};

TEST(Frame, IsReadAsItWasWritten) {
  const Message sent{
      {kFirst, Incarnation{7}}, Epoch{9}, MessageType{0x102}, bytes_of("head"), bytes_of("load")};
  const Bytes bytes = encode_frame({kOther, sent});
  ASSERT_EQ(bytes.size(), kFrameHeadBytes + 8);
  const Result<Frame> read = decode_frame(bytes);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read->to, kOther);
  EXPECT_EQ(read->message.from, sent.from);
  EXPECT_EQ(read->message.epoch, sent.epoch);
  EXPECT_EQ(read->message.type, sent.type);
  EXPECT_EQ(text_of(read->message.header), "head");
  EXPECT_EQ(text_of(read->message.payload), "load");
}

TEST(Frame, WithAnyBitChangedOrAnyByteMissingIsRefused) {
  const Message sent{
      {kFirst, Incarnation{7}}, Epoch{9}, MessageType{3}, bytes_of("head"), bytes_of("load")};
  const Bytes bytes = encode_frame({kOther, sent});
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode_frame(damaged).is_ok()) << bit;
  }
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_frame(std::span(bytes).first(length)).is_ok()) << length;
  }
  Bytes longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_frame(longer).is_ok());
}

TEST(Frame, OfAnotherVersionIsSaidToBe) {
  Bytes bytes = encode_frame({kOther, {}});
  bytes[4] = std::byte{2};
  const Result<Frame> read = decode_frame(bytes);
  EXPECT_EQ(read.status().code(), StatusCode::kIncompatible);
  EXPECT_NE(read.status().message().find("(2;"), std::string::npos) << read.status().message();
}

TEST(ByteReader, BelievesNoCountAboveWhatIsThere) {
  ByteWriter writer;
  writer.put(std::uint32_t{1'000'000});
  writer.put(std::uint64_t{1});
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.take_count(8), 0U);
  EXPECT_FALSE(reader.is_whole());
}

class Recorder final : public MessageHandler {
 public:
  void on_message(const Message& message) override {
    heard.push_back(std::to_string(raw(message.from.node)) + ":" + text_of(message.header) + ":" +
                    text_of(message.payload));
    last = message;
    if (then) then();
  }
  void on_peer_down(NodeId peer) override { down.push_back(peer); }

  std::vector<std::string> heard;
  std::vector<NodeId> down;
  Message last;
  std::function<void()> then;
};

// Two nodes joined by some transport.
class Pair {
 public:
  virtual ~Pair() = default;
  virtual Transport& end(NodeId node) = 0;
  virtual void settle() = 0;
  virtual std::int64_t clock_ns(NodeId node) = 0;
  virtual void kill_second() = 0;
};

class LoopbackPair final : public Pair {
 public:
  Transport& end(NodeId node) override { return node == kFirst ? first_ : *second_; }
  void settle() override {
    while (first_.progress() + (second_ ? second_->progress() : 0) > 0) {
    }
  }
  std::int64_t clock_ns(NodeId /*node*/) override { return 1000; }
  void kill_second() override { second_.reset(); }

 private:
  LoopbackHub hub_{2, [] { return std::int64_t{1000}; }};
  Loopback first_{hub_, kFirst};
  std::unique_ptr<Loopback> second_ = std::make_unique<Loopback>(hub_, kOther);
};

class SimulatedPair final : public Pair {
 public:
  Transport& end(NodeId node) override { return network_.transport(node); }
  void settle() override { network_.run_until(network_.now_ns() + kSecond); }
  std::int64_t clock_ns(NodeId node) override { return network_.clock_ns(node); }
  void kill_second() override { network_.crash(kOther); }

 private:
  SimulatedNetwork network_{2, 1};
};

struct Member {
  const char* name;
  std::unique_ptr<Pair> (*make)();
};

class EveryTransport : public testing::TestWithParam<Member> {
 protected:
  void SetUp() override {
    pair_ = GetParam().make();
    pair_->end(kFirst).set_handler(&first_);
    pair_->end(kOther).set_handler(&second_);
  }
  Status send(NodeId from, NodeId to, std::string_view header, std::string_view payload,
              std::int64_t deadline_in_ns = 10 * kSecond) {
    return pair_->end(from).send(to, MessageType{5}, bytes_of(header), {bytes_of(payload), {}},
                                 pair_->clock_ns(from) + deadline_in_ns);
  }

  std::unique_ptr<Pair> pair_;
  Recorder first_;
  Recorder second_;
};

TEST_P(EveryTransport, CarriesHeaderPayloadAndIdentity) {
  pair_->end(kFirst).set_identity(Incarnation{3}, Epoch{4});
  ASSERT_TRUE(send(kFirst, kOther, "a", std::string(100'000, 'x')).is_ok());
  ASSERT_TRUE(send(kOther, kFirst, "b", "").is_ok());
  EXPECT_TRUE(second_.heard.empty()) << "send() calls no handler";
  pair_->settle();
  EXPECT_EQ(second_.heard, std::vector{"1:a:" + std::string(100'000, 'x')});
  EXPECT_EQ(second_.last.from, (NodeLife{kFirst, Incarnation{3}}));
  EXPECT_EQ(second_.last.epoch, Epoch{4});
  EXPECT_EQ(second_.last.type, MessageType{5});
  EXPECT_EQ(first_.heard, std::vector<std::string>{"2:b:"});
}

TEST_P(EveryTransport, CarriesANodesMessagesToItself) {
  ASSERT_TRUE(send(kFirst, kFirst, "a", "b").is_ok());
  pair_->settle();
  EXPECT_EQ(first_.heard, std::vector<std::string>{"1:a:b"});
}

TEST_P(EveryTransport, LetsAHandlerSend) {
  second_.then = [&] { ASSERT_TRUE(send(kOther, kFirst, "answer", "").is_ok()); };
  ASSERT_TRUE(send(kFirst, kOther, "question", "").is_ok());
  pair_->settle();
  EXPECT_EQ(first_.heard, std::vector<std::string>{"2:answer:"});
}

TEST_P(EveryTransport, DeliversNothingBehindItsDeadline) {
  ASSERT_TRUE(send(kFirst, kOther, "late", "", -1).is_ok());
  pair_->settle();
  EXPECT_TRUE(second_.heard.empty());
}

TEST_P(EveryTransport, RefusesStrangersAndGiants) {
  EXPECT_EQ(send(kFirst, NodeId{3}, "", "").code(), StatusCode::kInvalid);
  EXPECT_EQ(send(kFirst, NodeId::kNone, "", "").code(), StatusCode::kInvalid);
  EXPECT_EQ(send(kFirst, kOther, std::string(kHeaderBytesMax + 1, 'x'), "").code(),
            StatusCode::kInvalid);
  EXPECT_EQ(send(kFirst, kOther, "", std::string(kPayloadBytesMax + 1, 'x')).code(),
            StatusCode::kInvalid);
}

TEST_P(EveryTransport, LetsGoOfAPayloadsOwner) {
  const auto owner = std::make_shared<std::string>("owned");
  ASSERT_TRUE(pair_->end(kFirst)
                  .send(kOther, MessageType{5}, {}, {bytes_of(*owner), owner},
                        pair_->clock_ns(kFirst) + kSecond)
                  .is_ok());
  pair_->settle();
  EXPECT_EQ(second_.heard, std::vector<std::string>{"1::owned"});
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_P(EveryTransport, HintsAtADeadPeer) {
  pair_->kill_second();
  (void)send(kFirst, kOther, "a", "");
  pair_->settle();
  EXPECT_EQ(first_.down, std::vector{kOther});
}

INSTANTIATE_TEST_SUITE_P(Transports, EveryTransport,
                         testing::Values(Member{"loopback",
                                                []() -> std::unique_ptr<Pair> {
                                                  return std::make_unique<LoopbackPair>();
                                                }},
                                         Member{"simulated",
                                                []() -> std::unique_ptr<Pair> {
                                                  return std::make_unique<SimulatedPair>();
                                                }}),
                         [](const auto& member) { return std::string(member.param.name); });

}  // namespace
}  // namespace cairn::cluster
