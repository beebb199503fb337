// SPDX-License-Identifier: Apache-2.0
#include "service/trace/compression.h"

#include <zstd.h>

#include <string>

namespace cairn {

void BlockCompressor::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
void BlockDecompressor::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

BlockCompressor::BlockCompressor(int level) : context_(ZSTD_createCCtx()), level_(level) {}

bool BlockCompressor::compress(std::span<const std::uint8_t> raw, TraceBytes* compressed) {
  if (context_ == nullptr || raw.size() < 2) return false;
  // With less room than the raw bytes take, the library gives up by itself.
  compressed->resize(raw.size() - 1);
  const std::size_t bytes = ZSTD_compressCCtx(context_.get(), compressed->data(),
                                              compressed->size(), raw.data(), raw.size(), level_);
  if (ZSTD_isError(bytes) != 0) return false;
  compressed->resize(bytes);
  return true;
}

BlockDecompressor::BlockDecompressor() : context_(ZSTD_createDCtx()) {}

bool BlockDecompressor::decompress(std::span<const std::uint8_t> compressed, std::size_t raw_bytes,
                                   TraceBytes* raw) {
  if (context_ == nullptr) return false;
  raw->resize(raw_bytes);
  return ZSTD_decompressDCtx(context_.get(), raw->data(), raw_bytes, compressed.data(),
                             compressed.size()) == raw_bytes;
}

bool StreamDecompressor::begins(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 4 && bytes[0] == 0x28 && bytes[1] == 0xb5 && bytes[2] == 0x2f &&
         bytes[3] == 0xfd;
}

Result<std::size_t> StreamDecompressor::decompress(std::span<const std::uint8_t>* compressed,
                                                   std::span<std::uint8_t> raw) {
  if (decompressor_.context_ == nullptr) {
    return Status(StatusCode::kExhausted, "no memory to decompress with");
  }
  // Called between two frames with nothing, the library would wait for the next one.
  if (compressed->empty() && is_at_frame_end_) return std::size_t{0};
  ZSTD_inBuffer input = {compressed->data(), compressed->size(), 0};
  ZSTD_outBuffer output = {raw.data(), raw.size(), 0};
  const std::size_t left = ZSTD_decompressStream(decompressor_.context_.get(), &output, &input);
  if (ZSTD_isError(left) != 0) {
    return Status(StatusCode::kInvalid,
                  std::string("the compressed data is damaged: ") + ZSTD_getErrorName(left));
  }
  is_at_frame_end_ = left == 0;
  *compressed = compressed->subspan(input.pos);
  return output.pos;
}

}  // namespace cairn
