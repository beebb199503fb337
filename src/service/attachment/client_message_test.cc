// SPDX-License-Identifier: Apache-2.0
// Right messages, each kind of wrong one, and random damage. CAIRN_SEED repeats a run.
#include "service/attachment/client_message.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "service/attachment/testing/array_messages.h"

namespace cairn::node {
namespace {

using protocol::Type;

constexpr std::uint32_t kObjects = 16;
constexpr std::uint32_t kLive = 3;
constexpr std::uint32_t kFree = 4;
constexpr std::uint32_t kDescriptions = 32;

// A message as a client would send it: its bytes and how many descriptors belong to it.
struct Sample {
  Type type{};
  std::string bytes;
  std::size_t descriptors = 0;
};

template <typename T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string about(Type type, std::uint32_t object) {
  protocol::ObjectMessage message;
  message.header.type = type;
  message.object = object;
  return bytes_of(message);
}

std::string bare(Type type) {
  protocol::Header header;
  header.type = type;
  return bytes_of(header);
}

std::string unserved(Type type) {
  protocol::UnservedMessage message;
  message.header.type = type;
  message.reason = protocol::UnservedReason::kNoSlot;
  message.description = kDescriptions - 1;
  std::strcpy(message.command, "unserved");
  return bytes_of(message);
}

std::vector<Sample> samples() {
  protocol::Hello hello;
  hello.run = 7;
  std::strcpy(hello.command, "worker");
  protocol::ForeignMessage foreign;
  std::strcpy(foreign.command, "/bin/static");
  protocol::Header inherited;
  inherited.type = Type::kInherited;
  protocol::SyncMessage sync;
  sync.device = 77;
  return {{Type::kHello, bytes_of(hello), 0},
          {Type::kObjectDescriptor, about(Type::kObjectDescriptor, kLive), 1},
          {Type::kDiscarded, about(Type::kDiscarded, kFree), 0},
          {Type::kFlush, about(Type::kFlush, kLive), 0},
          {Type::kInherited, bytes_of(inherited), 0},
          {Type::kForeign, bytes_of(foreign), 0},
          {Type::kSync, bytes_of(sync), 0},
          {Type::kDeclined, bare(Type::kDeclined), 0},
          {Type::kUnserved, unserved(Type::kUnserved), 0},
          {Type::kKeepThrough, unserved(Type::kKeepThrough), 1},
          {Type::kTakenOver, bare(Type::kTakenOver), 0},
          {Type::kMeetUnserved, about(Type::kMeetUnserved, kLive), 0},
          {Type::kArrayRead, bytes_of(testing::array_read(kLive)), 0},
          {Type::kArrayNews, bytes_of(testing::array_news(kLive)), 0},
          {Type::kPackedRead, bytes_of(testing::packed_read(kLive)), 0}};
}

unsigned given_seed() {
  const char* given = std::getenv("CAIRN_SEED");
  return given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

class ClientMessages : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets_), 0);
    objects_[kLive].set(kObjectLive);
  }
  void TearDown() override {
    ::close(sockets_[0]);
    ::close(sockets_[1]);
  }

  void send(const std::string& bytes, std::size_t descriptors) const {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 16)] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (descriptors != 0) {
      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors);
      cmsghdr* item = CMSG_FIRSTHDR(&header);
      item->cmsg_level = SOL_SOCKET;
      item->cmsg_type = SCM_RIGHTS;
      item->cmsg_len = CMSG_LEN(sizeof(int) * descriptors);
      for (std::size_t index = 0; index < descriptors; ++index)
        std::memcpy(CMSG_DATA(item) + index * sizeof(int), &sockets_[0], sizeof(int));
    }
    ASSERT_EQ(::sendmsg(sockets_[0], &header, 0), static_cast<ssize_t>(bytes.size()));
  }

  ClientMessage receive() const {
    Datagram datagram;
    EXPECT_EQ(receive_datagram(sockets_[1], 99, Look::kTake, &datagram), Received::kDatagram);
    return decode(std::move(datagram), table_, kDescriptions);
  }

  ClientMessage exchange(const std::string& bytes, std::size_t descriptors) const {
    send(bytes, descriptors);
    return receive();
  }

  bool is_malformed(const std::string& bytes, std::size_t descriptors) const {
    return std::holds_alternative<message::Malformed>(exchange(bytes, descriptors));
  }

  int sockets_[2] = {-1, -1};
  std::array<Object, kObjects> objects_{};
  ObjectBoard board_{};
  UnservedBoard unserved_{};
  ObjectTable table_{objects_.data(), kObjects, HashLines(), &board_, &unserved_};
};

TEST_F(ClientMessages, RightOnesAreUnderstood) {
  const std::vector<Sample> all = samples();
  const auto hello = std::get<message::Hello>(exchange(all[0].bytes, 0));
  EXPECT_EQ(hello.run, 7u);
  EXPECT_EQ(hello.layout_version, kLayoutVersion);
  EXPECT_EQ(hello.command, "worker");
  const auto given = std::get<message::ObjectDescriptor>(exchange(all[1].bytes, 1));
  EXPECT_EQ(raw(given.object), kLive);
  EXPECT_TRUE(given.descriptor);
  EXPECT_FALSE(given.is_lent);
  EXPECT_EQ(raw(std::get<message::Discarded>(exchange(all[2].bytes, 0)).object), kFree);
  EXPECT_EQ(raw(std::get<message::Flush>(exchange(all[3].bytes, 0)).object), kLive);
  EXPECT_TRUE(std::holds_alternative<message::Inherited>(exchange(all[4].bytes, 0)));
  const auto foreign = std::get<message::Foreign>(exchange(all[5].bytes, 0));
  EXPECT_EQ(foreign.command, "/bin/static");
  EXPECT_EQ(foreign.sender, 99);
  EXPECT_EQ(std::get<message::Sync>(exchange(all[6].bytes, 0)).device, 77u);
}

// The kernel then reports ECONNRESET, once, before it gives what the process had sent.
TEST_F(ClientMessages, WhatAProcessHasSentIsReadThoughItHasEndedWithAnAnswerUnread) {
  for (const Look look : {Look::kTake, Look::kPeek}) {
    ASSERT_EQ(::send(sockets_[1], "answer", 6, 0), 6);
    send(about(Type::kFlush, kLive), 0);
    send(about(Type::kDiscarded, kLive), 0);
    ::close(sockets_[0]);
    Datagram datagram;
    ASSERT_EQ(receive_datagram(sockets_[1], 99, look, &datagram), Received::kDatagram);
    const ClientMessage first = node::decode(std::move(datagram), table_, kDescriptions);
    EXPECT_TRUE(std::holds_alternative<message::Flush>(first));
    if (look == Look::kPeek) drop_datagram(sockets_[1]);
    EXPECT_TRUE(std::holds_alternative<message::Discarded>(receive()));
    EXPECT_EQ(receive_datagram(sockets_[1], 99, look, &datagram), Received::kClosed);
    ::close(sockets_[1]);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets_), 0);
  }
}

TEST_F(ClientMessages, AMessageIsDroppedThoughItsSenderHasEndedWithAnAnswerUnread) {
  send(about(Type::kFlush, kLive), 0);
  send(about(Type::kDiscarded, kLive), 0);
  ASSERT_EQ(::send(sockets_[1], "answer", 6, 0), 6);
  ::close(sockets_[0]);
  drop_datagram(sockets_[1]);
  EXPECT_TRUE(std::holds_alternative<message::Discarded>(receive()));
}

TEST_F(ClientMessages, NoOtherLengthIsUnderstood) {
  for (const Sample& sample : samples()) {
    for (std::size_t length = 1; length <= protocol::kMessageBytesMax + 8; ++length) {
      std::string bytes = sample.bytes;
      bytes.resize(length);
      EXPECT_EQ(is_malformed(bytes, sample.descriptors), length != sample.bytes.size())
          << static_cast<int>(sample.type) << " with " << length << " bytes";
    }
  }
}

TEST_F(ClientMessages, NoOtherNumberOfDescriptorsIsUnderstoodAndNoneIsLeft) {
  for (const Sample& sample : samples()) {
    for (const std::size_t count : {0, 1, 2, 3, 4, 5, 16}) {
      const std::size_t before = open_descriptors();
      EXPECT_EQ(is_malformed(sample.bytes, count), count != sample.descriptors)
          << static_cast<int>(sample.type) << " with " << count << " descriptors";
      EXPECT_EQ(open_descriptors(), before);
    }
  }
}

TEST_F(ClientMessages, ObjectsOutOfRangeOrFreeAreNotUnderstood) {
  for (const Type type : {Type::kObjectDescriptor, Type::kDiscarded, Type::kFlush}) {
    const std::size_t count = type == Type::kObjectDescriptor ? 1 : 0;
    for (const std::uint32_t object : {0u, kObjects, kObjects + 1, 0x80000000u, 0xffffffffu})
      EXPECT_TRUE(is_malformed(about(type, object), count)) << object;
    EXPECT_EQ(is_malformed(about(type, kFree), count), type != Type::kDiscarded);
  }
}

TEST_F(ClientMessages, TextsWithoutAnEndAreNotUnderstoodAndControlCharactersAreNotKept) {
  protocol::Hello hello;
  std::memset(hello.command, 'a', sizeof hello.command);
  EXPECT_TRUE(is_malformed(bytes_of(hello), 0));
  protocol::ForeignMessage foreign;
  std::memset(foreign.command, 'a', sizeof foreign.command);
  EXPECT_TRUE(is_malformed(bytes_of(foreign), 0));
  std::strcpy(hello.command, "a\nb\x1b[2J");
  EXPECT_EQ(std::get<message::Hello>(exchange(bytes_of(hello), 0)).command, "a?b?[2J");
  hello.claim = {3, 1, 0};
  EXPECT_TRUE(std::holds_alternative<message::Malformed>(exchange(bytes_of(hello), 0)));
  hello.claim = {3, 1, 9};
  EXPECT_EQ(std::get<message::Hello>(exchange(bytes_of(hello), 0)).claim.token, 9u);
}

TEST_F(ClientMessages, UnknownReasonsAndDescriptionsAreNotUnderstood) {
  protocol::UnservedMessage message;
  message.header.type = Type::kUnserved;
  message.reason = protocol::UnservedReason::kCount;
  EXPECT_TRUE(is_malformed(bytes_of(message), 0));
  message.reason = protocol::UnservedReason::kNone;
  EXPECT_FALSE(is_malformed(bytes_of(message), 0));
  message.description = kDescriptions;
  EXPECT_TRUE(is_malformed(bytes_of(message), 0));
}

TEST_F(ClientMessages, AnotherVersionIsToldApart) {
  protocol::Hello hello;
  hello.header.version = protocol::kVersion + 1;
  EXPECT_TRUE(std::get<message::Malformed>(exchange(bytes_of(hello), 0)).is_of_another_version);
  hello.header.magic = 0;
  EXPECT_FALSE(std::get<message::Malformed>(exchange(bytes_of(hello), 0)).is_of_another_version);
}

// What a message that was understood may hold, whatever was sent.
struct IsSound {
  const std::array<Object, kObjects>& objects;
  bool in_range(ObjectIndex object) const { return raw(object) != 0 && raw(object) < kObjects; }
  bool is_live(ObjectIndex object) const {
    return in_range(object) && objects[raw(object)].has(kObjectLive);
  }
  static bool is_text(const std::string& text, std::size_t longest) {
    return text.size() < longest && text.find_first_of(std::string("\0\n\x1b", 3)) == text.npos;
  }
  bool operator()(const message::Malformed& it) const { return it.reason != nullptr; }
  bool operator()(const message::Hello& it) const { return is_text(it.command, 48); }
  bool operator()(const message::ObjectDescriptor& it) const {
    return is_live(it.object) && static_cast<bool>(it.descriptor);
  }
  bool operator()(const message::Discarded& it) const { return in_range(it.object); }
  bool operator()(const message::ArrayRead& it) const {
    return is_live(it.object) && it.array.cell_bytes != 0 && !it.box.is_empty() &&
           it.array.bytes() != 0 && arrays::whole(it.array.shape).contains(it.box);
  }
  bool operator()(const message::PackedRead& it) const {
    return is_live(it.object) && it.array.grid().has_value() && !it.box.is_empty() &&
           !it.array.filters.all().empty() && arrays::whole(it.array.shape).contains(it.box);
  }
  bool operator()(const message::ArrayNews& it) const {
    const arrays::DatasetNews& news = it.news;
    const auto is_positive = [](std::uint64_t cells) { return cells != 0; };
    return is_live(it.object) && is_text(news.name, 164) && news.layout < arrays::Layout::kCount &&
           news.unfit < arrays::LeftReason::kConversion && news.shape.size() <= 8 &&
           std::ranges::all_of(news.shape.all(), is_positive) &&
           std::ranges::all_of(news.chunk.all(), is_positive) &&
           (news.chunk.size() == 0 || news.chunk.size() == news.shape.size());
  }
  bool operator()(const message::Inherited&) const { return true; }
  bool operator()(const message::Foreign& it) const { return is_text(it.command, 112); }
  bool operator()(const message::Flush& it) const { return is_live(it.object); }
  bool operator()(const message::Sync&) const { return true; }
  bool operator()(const message::Declined&) const { return true; }
  bool operator()(const message::Unserved& it) const {
    return is_text(it.command, 112) && it.reason < protocol::UnservedReason::kCount;
  }
  bool operator()(const message::KeepThrough& it) const {
    return static_cast<bool>(it.file) && it.told.description < kDescriptions;
  }
  bool operator()(const message::TakenOver&) const { return true; }
  bool operator()(const message::MeetUnserved& it) const { return is_live(it.object); }
  bool operator()(const message::MakeDurable& it) const { return is_live(it.object); }
  bool operator()(const message::NoteCut& it) const { return is_live(it.object); }
  bool operator()(const message::NoteRenamed& it) const { return is_live(it.object); }
  bool operator()(const message::MakeNamesDurable& it) const {
    return static_cast<bool>(it.directory);
  }
};

TEST_F(ClientMessages, RandomDamageYieldsSoundMessagesOrNone) {
  constexpr int kMessages = 60'000;
  const unsigned seed = given_seed();
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t end) {
    return static_cast<std::size_t>(random() % end);
  };
  const std::vector<Sample> all = samples();
  const std::size_t before = open_descriptors();
  int understood = 0;
  for (int message = 0; message < kMessages; ++message) {
    const Sample& sample = all[below(all.size())];
    std::string bytes = sample.bytes;
    if (below(4) == 0) bytes.resize(1 + below(300));
    // Behind the header, mostly: what says which message it is has tests of its own.
    for (std::size_t left = below(5); left > 0; --left) {
      const std::size_t first = bytes.size() > 8 && below(8) != 0 ? 8 : 0;
      bytes[first + below(bytes.size() - first)] = static_cast<char>(random());
    }
    if (below(8) == 0 && bytes.size() > 6) bytes[6] = static_cast<char>(below(18));
    const std::size_t descriptors = below(8) == 0 ? below(7) : sample.descriptors;
    const ClientMessage decoded = exchange(bytes, descriptors);
    ASSERT_TRUE(std::visit(IsSound{objects_}, decoded))
        << "message " << message << " of seed " << seed;
    if (!std::holds_alternative<message::Malformed>(decoded)) ++understood;
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_GT(understood, kMessages / 10);
}

QuestionWords words_of(Type type, std::uint32_t object, bool durable = false) {
  return protocol::words_of({type, static_cast<ObjectIndex>(object), durable, 77});
}

TEST_F(ClientMessages, AQuestionIsWhatWasAsked) {
  const ClientQuestion flush = node::decode(words_of(Type::kFlush, kLive, true), table_);
  ASSERT_TRUE(std::holds_alternative<message::Flush>(flush));
  EXPECT_EQ(std::get<message::Flush>(flush).object, ObjectIndex{kLive});
  EXPECT_TRUE(std::get<message::Flush>(flush).durable);
  const ClientQuestion meet = node::decode(words_of(Type::kMeetUnserved, kLive), table_);
  ASSERT_TRUE(std::holds_alternative<message::MeetUnserved>(meet));
  EXPECT_EQ(std::get<message::MeetUnserved>(meet).object, ObjectIndex{kLive});
  const ClientQuestion sync = node::decode(words_of(Type::kSync, 0), table_);
  ASSERT_TRUE(std::holds_alternative<message::Sync>(sync));
  EXPECT_EQ(std::get<message::Sync>(sync).device, 77U);
}

TEST_F(ClientMessages, WhatCannotBeAskedInTheRingIsMalformed) {
  const auto is_malformed = [this](const QuestionWords& words) {
    return std::holds_alternative<message::Malformed>(node::decode(words, table_));
  };
  EXPECT_TRUE(is_malformed(words_of(Type::kFlush, kFree))) << "an object that is not in use";
  EXPECT_TRUE(is_malformed(words_of(Type::kFlush, 0))) << "no object";
  EXPECT_TRUE(is_malformed(words_of(Type::kMeetUnserved, kObjects))) << "past the table";
  EXPECT_TRUE(is_malformed(words_of(Type::kFlush, UINT32_MAX)));
  EXPECT_TRUE(is_malformed(words_of(Type::kObjectDescriptor, kLive))) << "it needs a descriptor";
  EXPECT_TRUE(is_malformed({0, 0}));
  const std::uint64_t flag = words_of(Type::kFlush, kLive)[0] | std::uint64_t{2} << 16;
  EXPECT_TRUE(is_malformed({flag, 0}));
}

TEST_F(ClientMessages, RandomWordsNameNoObjectThatIsNotInUse) {
  std::mt19937_64 random(given_seed());
  for (int round = 0; round < 200'000; ++round) {
    QuestionWords words = {random(), random()};
    // Half of them are nearly right.
    if (round % 2 == 0) words[0] = (words[0] & 0x1f) << 32 | (random() & 0x3001f);
    const ClientQuestion question = node::decode(words, table_);
    if (const auto* flush = std::get_if<message::Flush>(&question)) {
      ASSERT_EQ(flush->object, ObjectIndex{kLive});
    }
    if (const auto* meet = std::get_if<message::MeetUnserved>(&question)) {
      ASSERT_EQ(meet->object, ObjectIndex{kLive});
    }
  }
}

}  // namespace
}  // namespace cairn::node
