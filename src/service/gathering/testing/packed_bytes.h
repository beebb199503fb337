// SPDX-License-Identifier: Apache-2.0
// Packs chunks as HDF5 does, for tests of what unpacks them.
//
// Thread safety: functions without state.
#pragma once

#if __has_include(<libdeflate.h>)

#include <libdeflate.h>

#include <cstddef>
#include <span>
#include <vector>

#include "policy/arrays/packed_array.h"
#include "service/gathering/chunk_codec.h"

namespace cairn::testing {

using Bytes = std::vector<std::byte>;

inline Bytes deflated(const Bytes& bytes) {
  libdeflate_compressor* state = libdeflate_alloc_compressor(6);
  Bytes packed(libdeflate_zlib_compress_bound(state, bytes.size()));
  packed.resize(
      libdeflate_zlib_compress(state, bytes.data(), bytes.size(), packed.data(), packed.size()));
  libdeflate_free_compressor(state);
  return packed;
}

inline Bytes shuffled(const Bytes& bytes, std::size_t cell_bytes) {
  const std::size_t cells = bytes.size() / cell_bytes;
  Bytes mixed = bytes;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    for (std::size_t byte = 0; byte < cell_bytes; ++byte)
      mixed[byte * cells + cell] = bytes[cell * cell_bytes + byte];
  }
  return mixed;
}

inline Bytes with_sum(Bytes bytes) {
  const std::uint32_t sum = node::fletcher32(bytes);
  for (unsigned shift = 0; shift < 32; shift += 8)
    bytes.push_back(static_cast<std::byte>(sum >> shift & 0xff));
  return bytes;
}

inline Bytes packed(const arrays::PackedArray& array, Bytes bytes) {
  for (const arrays::PlainFilter filter : array.filters.all()) {
    if (filter == arrays::PlainFilter::kDeflate) bytes = deflated(bytes);
    if (filter == arrays::PlainFilter::kShuffle) bytes = shuffled(bytes, array.cell_bytes);
    if (filter == arrays::PlainFilter::kFletcher32) bytes = with_sum(std::move(bytes));
  }
  return bytes;
}

}  // namespace cairn::testing

#endif
