// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_format.h"

#include <algorithm>

// The functions of the header alone, so that the library is not linked.
#define XXH_INLINE_ALL  // NOLINT(readability-identifier-naming): the library's name for it
#include <xxhash.h>

namespace cairn {
namespace {

template <typename Number>
void put_number(std::uint8_t* at, Number number) {
  for (std::size_t index = 0; index < sizeof number; ++index) {
    at[index] = static_cast<std::uint8_t>(number >> (8 * index));
  }
}

template <typename Number>
Number get_number(const std::uint8_t* at) {
  Number number = 0;
  for (std::size_t index = 0; index < sizeof number; ++index) {
    number = static_cast<Number>(number | Number{at[index]} << (8 * index));
  }
  return number;
}

// Both kinds of header end with a checksum of what stands before it.
constexpr std::size_t kSumBytes = sizeof(std::uint64_t);

void seal(std::span<std::uint8_t> image) {
  const auto body = image.first(image.size() - kSumBytes);
  put_number(image.data() + body.size(), trace_checksum(body));
}

bool is_sealed(std::span<const std::uint8_t> image) {
  const auto body = image.first(image.size() - kSumBytes);
  return get_number<std::uint64_t>(image.data() + body.size()) == trace_checksum(body);
}

}  // namespace

std::uint64_t trace_checksum(std::span<const std::uint8_t> bytes) {
  return XXH64(bytes.data(), bytes.size(), 0);
}

TraceHeaderImage make_trace_header(std::uint64_t start_unix_ns) {
  TraceHeaderImage image{};
  std::copy(kTraceMagic.begin(), kTraceMagic.end(), image.begin());
  put_number(image.data() + 8, kTraceVersion);
  put_number(image.data() + 12, std::uint32_t{kTraceHeaderBytes});
  put_number(image.data() + 16, start_unix_ns);
  seal(image);
  return image;
}

ReadTraceHeader read_trace_header(const TraceHeaderImage& image) {
  ReadTraceHeader header;
  header.version = get_number<std::uint32_t>(image.data() + 8);
  header.start_unix_ns = get_number<std::uint64_t>(image.data() + 16);
  if (!std::equal(kTraceMagic.begin(), kTraceMagic.end(), image.begin())) {
    header.fault = TraceHeaderFault::kMagic;
  } else if (header.version < kTraceVersionFirst || header.version > kTraceVersion) {
    // Before the checksum, for another version may keep it elsewhere.
    header.fault = TraceHeaderFault::kVersion;
  } else if (!is_sealed(image) ||
             get_number<std::uint32_t>(image.data() + 12) != kTraceHeaderBytes) {
    header.fault = TraceHeaderFault::kDamaged;
  }
  return header;
}

TraceBlockImage make_block_header(const TraceBlockHeader& header) {
  TraceBlockImage image{};
  put_number(image.data(), kTraceBlockMagic);
  image[4] = static_cast<std::uint8_t>(header.kind);
  image[5] = static_cast<std::uint8_t>(header.coding);
  put_number(image.data() + 8, header.stored_bytes);
  put_number(image.data() + 12, header.raw_bytes);
  put_number(image.data() + 16, header.entries);
  put_number(image.data() + 20, header.number);
  put_number(image.data() + 24, header.checksum);
  seal(image);
  return image;
}

const char* read_block_header(const TraceBlockImage& image, TraceBlockHeader* header) {
  if (get_number<std::uint32_t>(image.data()) != kTraceBlockMagic) return "no block begins here";
  if (!is_sealed(image)) return "the header of the block is damaged";
  if (image[4] < 1 || image[4] > 3 || image[5] > 1) return "the block is of an unknown kind";
  header->kind = static_cast<TraceBlockKind>(image[4]);
  header->coding = static_cast<TraceBlockCoding>(image[5]);
  header->stored_bytes = get_number<std::uint32_t>(image.data() + 8);
  header->raw_bytes = get_number<std::uint32_t>(image.data() + 12);
  header->entries = get_number<std::uint32_t>(image.data() + 16);
  header->number = get_number<std::uint32_t>(image.data() + 20);
  header->checksum = get_number<std::uint64_t>(image.data() + 24);
  const bool is_stored = header->coding == TraceBlockCoding::kStored;
  if (header->raw_bytes > kTraceBlockBytesMax || header->stored_bytes > header->raw_bytes ||
      is_stored != (header->stored_bytes == header->raw_bytes)) {
    return "the block has an impossible length";
  }
  return nullptr;
}

}  // namespace cairn
