// SPDX-License-Identifier: Apache-2.0
// A durable tier's folder: its superblock and segments as they are, and segments of records whose
// checksums are right and whose contents are anything. Whatever is read from them lies inside of
// them, and a repaired log needs no second repair.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "service/durable_log/log_check.h"
#include "service/durable_log/testing/power_cut_storage.h"
#include "service/replay/log_index.h"

namespace {

using namespace cairn::durable;

using Segment = std::vector<std::byte>;

constexpr std::uint64_t kSegmentBytes = kSegmentBytesMin;

Superblock fixed_superblock() {
  Superblock superblock;
  superblock.uuid[0] = 0x1234;
  superblock.uuid[1] = 0x9876;
  superblock.segment_bytes = kSegmentBytes;
  return superblock;
}

void append(Segment& segment, RecordHeader header, Bytes payload) {
  const std::uint64_t log = fixed_superblock().log();
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.payload_sum = payload_checksum(log, payload);
  const HeaderImage image = encode_header(log, header);
  segment.insert(segment.end(), image.begin(), image.end());
  segment.insert(segment.end(), payload.begin(), payload.end());
  while (segment.size() % kRecordAlignment != 0) segment.push_back(std::byte{0});
}

// Often small, often at an end of the range.
std::uint64_t word_of(cairn::fuzz::FuzzInput& input) {
  const auto how = input.take<std::uint8_t>();
  const auto near = input.take<std::uint16_t>();
  if (how % 4 == 0) return ~std::uint64_t{0} - near;
  if (how % 4 == 1) return input.take<std::uint64_t>();
  return near;
}

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// The payload of a record that introduces a file, mostly a good one.
Segment object_payload(cairn::fuzz::FuzzInput& input, RecordHeader& header) {
  ObjectStatement object;
  object.identity.key = cairn::file_key(1, header.words[0] % 8, 3);
  object.identity.path = input.take_bytes(input.take<std::uint8_t>() % 64);
  object.store = {header.words[1], static_cast<std::int64_t>(header.words[2])};
  return encode_object(object);
}

void append_record(Segment& segment, cairn::fuzz::FuzzInput& input, std::uint64_t number,
                   std::uint64_t& lsn) {
  RecordHeader header;
  header.kind = static_cast<RecordKind>(1 + input.take<std::uint8_t>() %
                                                static_cast<unsigned>(kRecordKindLast));
  const auto steps = input.take<std::uint8_t>();
  header.flags = steps & kFlagsAll;
  header.segment = number;
  lsn += steps < 200 ? 1 : steps % 5U;
  header.lsn = static_cast<Lsn>(lsn);
  header.object = static_cast<LogObject>(input.take<std::uint8_t>() % 4);
  header.durable = static_cast<Lsn>(steps % 2 == 0 ? lsn - 1 : word_of(input));
  for (std::uint64_t& word : header.words) word = word_of(input);
  if (header.kind == RecordKind::kObject && steps % 8 != 7) {
    append(segment, header, object_payload(input, header));
  } else {
    append(segment, header, bytes_of(input.take_bytes(input.take<std::uint8_t>() * 4U)));
  }
}

Segment made_segment(cairn::fuzz::FuzzInput& input, std::uint64_t number, std::uint64_t& lsn) {
  Segment segment;
  RecordHeader first;
  first.kind = RecordKind::kSegment;
  first.segment = number;
  first.lsn = static_cast<Lsn>(++lsn);
  first.words = {lsn, input.take<std::uint8_t>() % 4U, lsn - 1};
  const Superblock superblock = fixed_superblock();
  append(segment, first,
         encode_log_name({{superblock.uuid[0], superblock.uuid[1]}, superblock.created_ns}));
  const auto records = input.take<std::uint8_t>() % 16U;
  for (unsigned record = 0; record < records; ++record) append_record(segment, input, number, lsn);
  segment.resize(std::max<std::size_t>(segment.size(), kSegmentBytes));
  return segment;
}

// What recovery would bring to the store lies inside the records.
void look_at(const std::vector<PendingFile>& files) {
  for (const PendingFile& file : files) {
    CAIRN_CHECK(file.identity.path.size() <= kPathBytesMax);
    std::uint64_t before = 0;
    for (const auto& [begin, extent] : file.extents) {
      CAIRN_CHECK(before <= begin && begin < extent.end);
      CAIRN_CHECK(extent.record < file.records.size());
      const RecordPlace& record = file.records[extent.record];
      CAIRN_CHECK(extent.skip + (extent.end - begin) <= record.bytes);
      before = extent.end;
    }
    (void)file.bytes();
  }
}

void read(PowerCutDisk& disk) {
  auto storage = disk.storage();
  auto superblock = open_superblock(*storage, SuperblockLock::kNone);
  if (!superblock.is_ok()) return;
  auto scan = LogScan::open(*storage, superblock->content);
  if (!scan.is_ok()) return;
  LogIndex index;
  const auto report = scan->run(
      Payloads::kVerified,
      [&](const FoundRecord& record, const LogSegment& segment) { index.add(record, segment); });
  if (report.is_ok()) look_at(index.take_pending());
}

void check_and_repair(PowerCutDisk& disk) {
  const auto first = check_log(*disk.storage(), CheckWhat::kRepair);
  if (!first.is_ok()) return;
  const auto second = check_log(*disk.storage(), CheckWhat::kRepair);
  CAIRN_CHECK(second.is_ok());
  CAIRN_CHECK(second->repaired.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cairn::fuzz::FuzzInput input(data, size);
  PowerCutDisk disk;
  const auto how = input.take<std::uint8_t>();
  if (how % 4 == 0) {
    const Bytes superblock = bytes_of(input.take_bytes(kSuperblockBytes));
    disk.set_content(kSuperblockName, {superblock.begin(), superblock.end()});
  } else {
    CAIRN_CHECK(write_superblock(*disk.storage(), fixed_superblock()).is_ok());
  }
  std::uint64_t lsn = input.take<std::uint8_t>();
  const unsigned segments = 1 + how / 4 % 3;
  for (std::uint64_t number = 1; number <= segments; ++number) {
    Segment segment;
    if (how / 16 % 4 == number) {
      const Bytes bytes = bytes_of(input.take_bytes(input.take<std::uint16_t>()));
      segment.assign(bytes.begin(), bytes.end());
    } else {
      segment = made_segment(input, number, lsn);
    }
    disk.set_content(segment_name(number), std::move(segment));
  }
  read(disk);
  check_and_repair(disk);
  return 0;
}
