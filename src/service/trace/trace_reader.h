// SPDX-License-Identifier: Apache-2.0
// Reads a trace (service/trace/trace_format.h), block by block.
//
// Thread safety: none. Ownership: the open file, the names so far and the events of one block.
// Errors: kInvalid for what is no trace or is damaged, kIncompatible for one of another version;
// each with the file and the byte at which it was found. Events before a damaged block are
// returned; what follows it is not looked for. That a trace was cut off is no error (warning()).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "service/trace/compression.h"
#include "service/trace/text_input.h"
#include "service/trace/trace_event.h"
#include "service/trace/trace_format.h"

namespace cairn {

class TraceReader final : public TraceSource {
 public:
  // Errors: also kInvalid for a file that ends within its header.
  static Result<std::unique_ptr<TraceReader>> open(const std::string& path);

  bool next(TraceEvent* event) override;
  Status status() const override { return status_; }
  std::string warning() const override { return warning_; }
  const TraceNames& names() const override { return names_; }
  bool has_syncs() const override { return version_ > 1; }
  std::uint64_t io_ns() const override { return io_ns_; }

  // The end is missing. Known when next() has returned false.
  bool is_cut_off() const { return !warning_.empty(); }
  std::uint64_t start_unix_ns() const { return start_unix_ns_; }
  std::uint64_t events() const { return events_; }

 private:
  TraceReader(std::string path, StdioFile file);
  Status read_header();
  // Returns: false when there is no further block, and is_over_ from then on.
  bool read_block();
  bool read_payload(const TraceBlockHeader& header);
  bool take_block(const TraceBlockHeader& header);
  bool take_names(std::uint32_t count);
  bool take_events(std::uint32_t count);
  bool take_end();
  std::size_t read_bytes(std::span<std::uint8_t> target);
  bool damaged(const std::string& reason);
  bool cut_off();

  const std::string path_;
  StdioFile file_;
  Status status_;
  std::string warning_;
  bool is_over_ = false;
  std::uint32_t version_ = 0;
  std::uint64_t start_unix_ns_ = 0;
  std::uint64_t io_ns_ = 0;
  std::uint64_t position_ = 0;     // behind the bytes that were read
  std::uint64_t block_begin_ = 0;  // of the block that is being read
  std::uint32_t blocks_ = 0;
  std::uint64_t events_ = 0;
  TraceNames names_;
  BlockDecompressor decompressor_;
  TraceBytes stored_;
  TraceBytes raw_;
  std::vector<TraceEvent> block_;
  std::size_t next_ = 0;
};

}  // namespace cairn
