// SPDX-License-Identifier: Apache-2.0
// zstd (RFC 8878), for the blocks of a trace and for text files that were compressed as a whole.
// The library is called in compression.cc and nowhere else.
//
// Thread safety: none. Ownership: each owns its context, up to a few MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "service/trace/trace_format.h"

// The library's own types, so that its header is not needed here.
struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace cairn {

inline constexpr int kCompressionLevelMin = 1;
inline constexpr int kCompressionLevelMax = 19;

class BlockCompressor {
 public:
  explicit BlockCompressor(int level);
  // Returns: false when the bytes would not become fewer, or there is no memory for it; they are
  // to be stored as they are then.
  bool compress(std::span<const std::uint8_t> raw, TraceBytes* compressed);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  const int level_;
};

class BlockDecompressor {
 public:
  BlockDecompressor();
  // Returns: false when these are not the bytes of one frame that makes exactly `raw_bytes`.
  bool decompress(std::span<const std::uint8_t> compressed, std::size_t raw_bytes, TraceBytes* raw);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  friend class StreamDecompressor;
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

class StreamDecompressor {
 public:
  // Whether a file that begins like this is compressed.
  static bool begins(std::span<const std::uint8_t> bytes);

  // Takes of `compressed` what it needs, from the front, and fills `raw` from the front.
  // Returns: how many bytes of `raw` were filled. Errors: kInvalid when this is not zstd's format.
  Result<std::size_t> decompress(std::span<const std::uint8_t>* compressed,
                                 std::span<std::uint8_t> raw);
  // Whether all that was begun is complete: false when the input ends in the middle.
  bool is_at_frame_end() const { return is_at_frame_end_; }

 private:
  BlockDecompressor decompressor_;
  bool is_at_frame_end_ = true;
};

}  // namespace cairn
