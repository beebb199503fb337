// SPDX-License-Identifier: Apache-2.0
// What the writer writes, and what the reader makes of it when it is whole, cut off or damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "service/trace/testing/memory_file.h"
#include "service/trace/trace_reader.h"
#include "service/trace/trace_writer.h"

namespace cairn {
namespace {

constexpr std::uint32_t kTestFiles = 4;
constexpr std::uint32_t kTestProcesses = 2;

void write_trace(const std::string& path, const std::vector<TraceEvent>& events,
                 const TraceWriterOptions& options = {}) {
  auto writer = TraceWriter::create(path, options);
  ASSERT_TRUE(writer) << writer.status().message();
  for (std::uint32_t number = 0; number < kTestFiles; ++number) {
    EXPECT_EQ(*(*writer)->file("/data/" + std::to_string(number)), number);
  }
  for (std::uint32_t number = 0; number < kTestProcesses; ++number) {
    EXPECT_EQ(*(*writer)->process("rank " + std::to_string(number)), number);
  }
  for (const TraceEvent& event : events) {
    const Status status = (*writer)->append(event);
    ASSERT_TRUE(status) << status.message();
  }
  const Status status = (*writer)->finish();
  ASSERT_TRUE(status) << status.message();
}

std::vector<TraceEvent> small_events() {
  std::mt19937_64 random(1);
  return random_events(&random, 40, kTestFiles, kTestProcesses);
}

bool is_prefix(const std::vector<TraceEvent>& some, const std::vector<TraceEvent>& all) {
  return some.size() <= all.size() && std::equal(some.begin(), some.end(), all.begin());
}

std::string from_hexadecimal(std::string_view text) {
  std::string bytes;
  for (std::size_t index = 0; index + 1 < text.size(); index += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(text.substr(index, 2)), nullptr, 16)));
  }
  return bytes;
}

TEST(TraceFile, WhatIsWrittenComesBack) {
  std::mt19937_64 random(printed_seed());
  for (int round = 0; round < 20; ++round) {
    MemoryFile file;
    const auto events = random_events(&random, random() % 20'000, kTestFiles, kTestProcesses);
    TraceWriterOptions options;
    options.start_unix_ns = random();
    options.events_per_block = static_cast<std::uint32_t>(random() % 3000 + 1);
    write_trace(file.path(), events, options);
    auto reader = TraceReader::open(file.path());
    ASSERT_TRUE(reader) << reader.status().message();
    ASSERT_EQ(all_events(reader->get()), events);
    EXPECT_TRUE((*reader)->status());
    EXPECT_EQ((*reader)->warning(), "");
    EXPECT_EQ((*reader)->events(), events.size());
    EXPECT_EQ((*reader)->start_unix_ns(), options.start_unix_ns);
    EXPECT_EQ((*reader)->names().files.count(), kTestFiles);
    EXPECT_EQ((*reader)->names().files.name(3), "/data/3");
    EXPECT_EQ((*reader)->names().processes.name(1), "rank 1");
  }
}

// The file of one event, in full: small blocks are stored as they are, so that the bytes do not
// depend on the version of zstd. This is how version 1 was written, without fsyncs.
TEST(TraceFile, TheFirstVersionIsReadForever) {
  const std::string golden = from_hexadecimal(
      "89435452430d0a1a010000002000000000002a36fe9c97178a5859adbbd0b2df43424c4b01000000"
      "070000000700000002000000000000007a3df8bfb2e4a26cb0fab4cd177794d400022f6101017043"
      "424c4b020000000a0000000a0000000100000001000000455b64f543b29733be78256fae75659003"
      "d00f0000068040800843424c4b030000000100000001000000000000000200000030e7211b812741"
      "8a54b3bfcc9d18cae001");
  const TraceEvent event{1000, 4096, 512, 0, 0, 3, TraceKind::kReadHit};
  MemoryFile old(golden);
  auto reader = TraceReader::open(old.path());
  ASSERT_TRUE(reader);
  EXPECT_EQ(all_events(reader->get()), std::vector<TraceEvent>{event});
  EXPECT_TRUE((*reader)->status()) << (*reader)->status().message();
  EXPECT_FALSE((*reader)->has_syncs());
  EXPECT_EQ((*reader)->io_ns(), 0U);
  EXPECT_EQ((*reader)->names().files.name(0), "/a");
  EXPECT_EQ((*reader)->names().processes.name(0), "p");
}

TEST(TraceFile, TheBytesAreTheseForever) {
  const std::string golden = from_hexadecimal(
      "89435452430d0a1a020000002000000000002a36fe9c97172e0894cdd322ee1d43424c4b01000000"
      "070000000700000002000000000000007a3df8bfb2e4a26cb0fab4cd177794d400022f6101017043"
      "424c4b0200000009000000090000000100000001000000266ca3b64d3cde40cca6450972ebfc1507"
      "d00f00000600f40343424c4b0300000003000000030000000000000002000000a57aa03f0e4fd958"
      "95272d75364b97ab01ac02");
  MemoryFile file;
  auto writer = TraceWriter::create(file.path(), {.start_unix_ns = 1'700'000'000'000'000'000});
  ASSERT_TRUE(writer);
  EXPECT_EQ(*(*writer)->file("/a"), 0U);
  EXPECT_EQ(*(*writer)->process("p"), 0U);
  const TraceEvent event{1000, 0, 250, 0, 0, 3, TraceKind::kSync};
  ASSERT_TRUE((*writer)->append(event));
  (*writer)->set_io_ns(300);
  ASSERT_TRUE((*writer)->finish());
  EXPECT_EQ(file.content(), golden);
  EXPECT_EQ((*writer)->file_bytes(), golden.size());

  MemoryFile old(golden);
  auto reader = TraceReader::open(old.path());
  ASSERT_TRUE(reader);
  EXPECT_EQ(all_events(reader->get()), std::vector<TraceEvent>{event});
  EXPECT_TRUE((*reader)->has_syncs());
  EXPECT_EQ((*reader)->io_ns(), 300U);
}

TEST(TraceFile, CutOffAnywhereItGivesItsWholeBlocks) {
  const auto events = small_events();
  MemoryFile file;
  write_trace(file.path(), events, {.events_per_block = 9});
  const std::string whole = file.content();
  std::size_t most = 0;
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    file.set_content(whole.substr(0, bytes));
    auto reader = TraceReader::open(file.path());
    if (bytes < kTraceHeaderBytes) {
      ASSERT_FALSE(reader);
      EXPECT_NE(reader.status().message().find("at byte " + std::to_string(bytes)),
                std::string::npos);
      continue;
    }
    ASSERT_TRUE(reader);
    const auto read = all_events(reader->get());
    ASSERT_TRUE(is_prefix(read, events)) << bytes;
    EXPECT_EQ(read.size() % 9, read.size() == events.size() ? events.size() % 9 : 0U);
    EXPECT_GE(read.size(), most) << "more bytes, and fewer events";
    most = read.size();
    EXPECT_TRUE((*reader)->status()) << (*reader)->status().message();
    EXPECT_TRUE((*reader)->is_cut_off()) << bytes;
    EXPECT_NE((*reader)->warning().find("the end is missing"), std::string::npos);
    EXPECT_NE((*reader)->warning().find("byte " + std::to_string(bytes)), std::string::npos);
    EXPECT_NE((*reader)->warning().find(std::to_string(read.size()) + " events"),
              std::string::npos);
  }
  EXPECT_EQ(most, events.size());
}

TEST(TraceFile, ADamagedByteIsAlwaysFound) {
  const auto events = small_events();
  MemoryFile file;
  write_trace(file.path(), events, {.events_per_block = 9});
  const std::string whole = file.content();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      file.set_content(damaged);
      auto reader = TraceReader::open(file.path());
      if (!reader) {
        ASSERT_LT(at, kTraceHeaderBytes);
        continue;
      }
      ASSERT_TRUE(is_prefix(all_events(reader->get()), events)) << at;
      const Status status = (*reader)->status();
      ASSERT_EQ(status.code(), StatusCode::kInvalid) << at;
      EXPECT_NE(status.message().find(file.path() + ": at byte "), std::string::npos);
    }
  }
}

TEST(TraceFile, ACorruptBlockIsNamedWithItsPlace) {
  MemoryFile file;
  write_trace(file.path(), small_events());
  std::string content = file.content();
  content[kTraceHeaderBytes + kTraceBlockHeaderBytes] ^= 1;
  file.set_content(content);
  auto reader = TraceReader::open(file.path());
  ASSERT_TRUE(reader);
  EXPECT_TRUE(all_events(reader->get()).empty());
  EXPECT_EQ(
      (*reader)->status().message(),
      "trace: " + file.path() + ": at byte 32: block 0 is corrupt: its checksum is another one");
}

TEST(TraceFile, ABlockThatIsMissingIsFound) {
  MemoryFile file;
  write_trace(file.path(), {});
  // Names, then the end: without the names' block the end is not the block that is due.
  const std::string content = file.content();
  constexpr std::size_t kNumbersOfTheEnd = 2;
  const std::size_t end = content.size() - kTraceBlockHeaderBytes - kNumbersOfTheEnd;
  file.set_content(content.substr(0, kTraceHeaderBytes) + content.substr(end));
  auto reader = TraceReader::open(file.path());
  ASSERT_TRUE(reader);
  EXPECT_TRUE(all_events(reader->get()).empty());
  EXPECT_NE((*reader)->status().message().find("numbered 1"), std::string::npos);
}

TEST(TraceFile, WhatStandsBehindTheEndIsFound) {
  MemoryFile file;
  write_trace(file.path(), small_events());
  file.set_content(file.content() + "x");
  auto reader = TraceReader::open(file.path());
  ASSERT_TRUE(reader);
  EXPECT_EQ(all_events(reader->get()), small_events());
  EXPECT_NE((*reader)->status().message().find("behind the end"), std::string::npos);
}

std::string text_of(std::span<const std::uint8_t> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

// A block whose checksums are right, whatever it says.
std::string sealed_block(TraceBlockHeader header, const TraceBytes& stored) {
  header.stored_bytes = static_cast<std::uint32_t>(stored.size());
  if (header.coding == TraceBlockCoding::kStored) header.raw_bytes = header.stored_bytes;
  header.checksum = trace_checksum(stored);
  return text_of(make_block_header(header)) + text_of(stored);
}

// Not damage but another writer's mistake, or malice: the checksums cannot help.
TEST(TraceFile, ABlockThatContradictsItselfIsFound) {
  using Kind = TraceBlockKind;
  const TraceBytes names = {0, 2, '/', 'a', 1, 1, 'p'};
  const TraceBytes event = {1, 0, 0, 0, 0, 0, 0};
  const TraceBytes event_of_file_1 = {1, 0, 2, 0, 0, 0, 0};
  const struct {
    TraceBlockHeader header;
    TraceBytes stored;
    const char* reason;
  } kCases[] = {
      {{.kind = Kind::kEvents, .entries = 1, .number = 1}, event_of_file_1, "was not named"},
      {{.kind = Kind::kEvents, .entries = 2, .number = 1}, event, "events cannot be made out"},
      {{.kind = Kind::kEvents, .entries = UINT32_MAX, .number = 1}, event, "events cannot be"},
      {{.kind = Kind::kNames, .entries = 3, .number = 1}, names, "names cannot be made out"},
      {{.kind = Kind::kEnd, .number = 1}, {5, 0}, "there are 5 events, not 0"},
      {{.kind = Kind::kEnd, .number = 1}, {0, 0, 0}, "end cannot be made out"},
      {{.kind = static_cast<Kind>(4), .number = 1}, {}, "unknown kind"},
      {{.kind = Kind::kEvents, .number = 3}, {}, "numbered 3"},
      {{.kind = Kind::kEvents,
        .coding = TraceBlockCoding::kZstd,
        .raw_bytes = kTraceBlockBytesMax,
        .entries = 1,
        .number = 1},
       event,
       "cannot be decompressed"},
      {{.kind = Kind::kEvents,
        .coding = TraceBlockCoding::kZstd,
        .raw_bytes = kTraceBlockBytesMax + 1,
        .number = 1},
       event,
       "impossible length"},
  };
  const std::string beginning =
      text_of(make_trace_header(0)) + sealed_block({.kind = Kind::kNames, .entries = 2}, names);
  MemoryFile file;
  for (const auto& one : kCases) {
    file.set_content(beginning + sealed_block(one.header, one.stored));
    auto reader = TraceReader::open(file.path());
    ASSERT_TRUE(reader);
    EXPECT_TRUE(all_events(reader->get()).empty());
    const std::string message = (*reader)->status().message();
    EXPECT_NE(message.find(one.reason), std::string::npos) << one.reason << ": " << message;
    EXPECT_NE(message.find("at byte " + std::to_string(beginning.size())), std::string::npos);
  }
  file.set_content(beginning +
                   sealed_block({.kind = Kind::kEvents, .entries = 1, .number = 1}, event) +
                   sealed_block({.kind = Kind::kEnd, .number = 2}, {1, 0}));
  auto reader = TraceReader::open(file.path());
  ASSERT_TRUE(reader);
  EXPECT_EQ(all_events(reader->get()).size(), 1U) << "else the cases above show nothing";
  EXPECT_TRUE((*reader)->status()) << (*reader)->status().message();
  EXPECT_EQ((*reader)->warning(), "");
}

TEST(TraceFile, AnotherVersionAndAnotherFileAreToldApart) {
  MemoryFile file;
  write_trace(file.path(), {});
  std::string content = file.content();
  content[8] = 3;
  file.set_content(content);
  auto reader = TraceReader::open(file.path());
  EXPECT_EQ(reader.status().code(), StatusCode::kIncompatible);
  EXPECT_NE(reader.status().message().find("version 3; this program reads versions 1 to 2"),
            std::string::npos);
  file.set_content(std::string(1000, 'x'));
  reader = TraceReader::open(file.path());
  EXPECT_EQ(reader.status().code(), StatusCode::kInvalid);
  EXPECT_NE(reader.status().message().find("not a trace"), std::string::npos);
  reader = TraceReader::open("/does/not/exist");
  EXPECT_EQ(reader.status().code(), StatusCode::kNotFound);
}

TEST(TraceFile, WhatWasFlushedIsThereWithoutAnEnd) {
  MemoryFile file;
  {
    auto writer = TraceWriter::create(file.path());
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->file("/a"));
    ASSERT_TRUE((*writer)->process("p"));
    ASSERT_TRUE((*writer)->append(TraceEvent{}));
    ASSERT_TRUE((*writer)->flush());
    ASSERT_TRUE((*writer)->append(TraceEvent{}));
  }
  auto reader = TraceReader::open(file.path());
  ASSERT_TRUE(reader);
  EXPECT_EQ(all_events(reader->get()).size(), 1U);
  EXPECT_TRUE((*reader)->is_cut_off());
}

TEST(TraceFile, NamesMayComeAtAnyTime) {
  MemoryFile file;
  auto writer = TraceWriter::create(file.path(), {.events_per_block = 7});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->process("p"));
  for (std::uint32_t number = 0; number < 5000; ++number) {
    const std::string name = std::string(1000, 'd') + std::to_string(number);
    EXPECT_EQ(*(*writer)->file(name), number);
    EXPECT_EQ(*(*writer)->file(name), number) << "it has one already";
    if (number % 10 == 0) {
      TraceEvent event;
      event.file = number;
      ASSERT_TRUE((*writer)->append(event));
    }
  }
  ASSERT_TRUE((*writer)->finish());
  auto reader = TraceReader::open(file.path());
  ASSERT_TRUE(reader);
  TraceEvent event;
  for (std::uint32_t number = 0; number < 5000; number += 10) {
    ASSERT_TRUE((*reader)->next(&event));
    EXPECT_EQ(event.file, number);
    EXPECT_TRUE((*reader)->names().files.name(number).ends_with("d" + std::to_string(number)));
  }
  EXPECT_FALSE((*reader)->next(&event));
  EXPECT_TRUE((*reader)->status());
  EXPECT_EQ((*reader)->names().files.count(), 5000U);
}

TEST(TraceFile, AnEventWithoutANameIsRefusedAndTheRestGoesOn) {
  MemoryFile file;
  auto writer = TraceWriter::create(file.path());
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->file("/a"));
  EXPECT_EQ((*writer)->append(TraceEvent{}).code(), StatusCode::kInvalid) << "no process";
  ASSERT_TRUE((*writer)->process("p"));
  TraceEvent event;
  event.kind = static_cast<TraceKind>(kTraceKinds);
  EXPECT_EQ((*writer)->append(event).code(), StatusCode::kInvalid);
  EXPECT_FALSE((*writer)->file(std::string(kTraceNameBytesMax + 1, 'x')));
  EXPECT_TRUE((*writer)->append(TraceEvent{}));
  EXPECT_EQ((*writer)->events(), 1U);
  EXPECT_TRUE((*writer)->finish());
  EXPECT_FALSE((*writer)->append(TraceEvent{})) << "it is finished";
}

TEST(TraceFile, AFullDiskIsSaid) {
  auto writer = TraceWriter::create("/dev/full");
  EXPECT_EQ(writer.status().code(), StatusCode::kExhausted);
  writer = TraceWriter::create("/does/not/exist");
  EXPECT_EQ(writer.status().code(), StatusCode::kNotFound);
  MemoryFile file;
  EXPECT_FALSE(TraceWriter::create(file.path(), {.events_per_block = 0}));
  EXPECT_FALSE(TraceWriter::create(file.path(), {.compression_level = 20}));
}

TEST(TraceFile, SequentialReadsCostNextToNothing) {
  MemoryFile file;
  std::vector<TraceEvent> events(100'000);
  for (std::size_t index = 0; index < events.size(); ++index) {
    events[index] = {index * 50'000, index * 65'536, 65'536, 1, 0, 0, TraceKind::kReadHit};
  }
  write_trace(file.path(), events);
  EXPECT_LT(file.content().size(), events.size() / 10);
}

}  // namespace
}  // namespace cairn
