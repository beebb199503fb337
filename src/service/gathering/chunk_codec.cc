// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/chunk_codec.h"

#ifdef CAIRN_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace cairn::node {
namespace {

using arrays::PlainFilter;

constexpr std::size_t kSumBytes = 4;

// How large a chunk was before each filter, and behind the last one but for deflate, whose outcome
// nobody knows: 0 stands for that.
std::array<std::size_t, arrays::FilterList::kMost> sizes_before(
    std::span<const PlainFilter> filters, std::size_t bytes) {
  std::array<std::size_t, arrays::FilterList::kMost> sizes{};
  for (std::size_t at = 0; at < filters.size(); ++at) {
    sizes[at] = bytes;
    if (filters[at] == PlainFilter::kDeflate) bytes = 0;
    if (filters[at] == PlainFilter::kFletcher32 && bytes != 0) bytes += kSumBytes;
  }
  return sizes;
}

}  // namespace

std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  // Sums of 16-bit words, the first byte of each the higher one, modulo 65535; so many words leave
  // room in 32 bits.
  constexpr std::size_t kWordsAtOnce = 360;
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  const auto fold = [](std::uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  const auto byte = [&bytes](std::size_t at) { return static_cast<std::uint32_t>(bytes[at]); };
  std::size_t at = 0;
  while (bytes.size() - at >= 2) {
    std::size_t words = std::min(kWordsAtOnce, (bytes.size() - at) / 2);
    for (; words > 0; --words, at += 2) {
      first += byte(at) << 8 | byte(at + 1);
      second += first;
    }
    first = fold(first);
    second = fold(second);
  }
  if (at < bytes.size()) {
    first = fold(first + (byte(at) << 8));
    second = fold(second + first);
  }
  first = fold(first);
  second = fold(second);
  return second << 16 | first;
}

#ifdef CAIRN_HAVE_LIBDEFLATE

struct ChunkCodec::Inflater {
  libdeflate_decompressor* const state = libdeflate_alloc_decompressor();

  Inflater() = default;
  ~Inflater() { libdeflate_free_decompressor(state); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

bool ChunkCodec::is_there() { return true; }

bool ChunkCodec::inflate(std::size_t bytes_before) {
  if (inflater_->state == nullptr || bytes_before == 0) return false;
  other_.resize(bytes_before);
  // Fails where there are fewer or more.
  if (libdeflate_zlib_decompress(inflater_->state, now_.data(), now_.size(), other_.data(),
                                 other_.size(), nullptr) != LIBDEFLATE_SUCCESS)
    return false;
  std::swap(made_, other_);
  now_ = made_;
  return true;
}

#else

struct ChunkCodec::Inflater {};

bool ChunkCodec::is_there() { return false; }

bool ChunkCodec::inflate(std::size_t) { return false; }

#endif

ChunkCodec::ChunkCodec() : inflater_(std::make_unique<Inflater>()) {}
ChunkCodec::~ChunkCodec() = default;

bool ChunkCodec::check_sum(std::size_t bytes_before) {
  if (now_.size() < kSumBytes) return false;
  const std::span<const std::byte> bytes = now_.first(now_.size() - kSumBytes);
  if (bytes_before != 0 && bytes.size() != bytes_before) return false;
  std::uint32_t stored = 0;
  for (std::size_t at = 0; at < kSumBytes; ++at)
    stored |= static_cast<std::uint32_t>(now_[bytes.size() + at]) << (8 * at);
  if (stored != fletcher32(bytes)) return false;
  now_ = bytes;
  return true;
}

bool ChunkCodec::unshuffle(std::size_t cell_bytes, std::size_t bytes_before) {
  if (bytes_before == 0 || now_.size() != bytes_before) return false;
  const std::size_t cells = now_.size() / cell_bytes;
  // HDF5 leaves those as they are.
  if (cell_bytes < 2 || cells < 2) return true;
  other_.resize(now_.size());
  for (std::size_t byte = 0; byte < cell_bytes; ++byte) {
    const std::byte* from = now_.data() + byte * cells;
    std::byte* to = other_.data() + byte;
    for (std::size_t cell = 0; cell < cells; ++cell, to += cell_bytes) *to = from[cell];
  }
  // A part of a cell, such as a checksum.
  const std::size_t whole = cells * cell_bytes;
  std::copy(now_.begin() + static_cast<std::ptrdiff_t>(whole), now_.end(),
            other_.begin() + static_cast<std::ptrdiff_t>(whole));
  std::swap(made_, other_);
  now_ = made_;
  return true;
}

bool ChunkCodec::undo(PlainFilter filter, std::size_t cell_bytes, std::size_t bytes_before) {
  switch (filter) {
    case PlainFilter::kDeflate:
      return inflate(bytes_before);
    case PlainFilter::kShuffle:
      return unshuffle(cell_bytes, bytes_before);
    case PlainFilter::kFletcher32:
      return check_sum(bytes_before);
  }
  return false;
}

bool ChunkCodec::unpack(const arrays::PackedArray& array, std::span<const std::byte> packed,
                        std::span<std::byte> cells) {
  CAIRN_CHECK(array.cell_bytes != 0);
  CAIRN_CHECK(cells.size() == array.chunk_bytes());
  const std::span<const PlainFilter> filters = array.filters.all();
  const auto sizes = sizes_before(filters, cells.size());
  now_ = packed;
  for (std::size_t at = filters.size(); at-- > 0;) {
    if (!undo(filters[at], array.cell_bytes, sizes[at])) return false;
  }
  if (now_.size() != cells.size()) return false;
  std::memcpy(cells.data(), now_.data(), cells.size());
  return true;
}

}  // namespace cairn::node
