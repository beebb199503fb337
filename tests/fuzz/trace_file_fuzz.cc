// SPDX-License-Identifier: Apache-2.0
// A trace that somebody brings: the bytes as they are (our own, DXT, CSV, compressed or not), and
// as the blocks of a trace of ours, with headers and sums that are right, so that the columns
// behind them are reached.
//
//   the second way: each block is kind (one byte), entries (two), length (two), raw bytes
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "service/trace/open_trace.h"
#include "service/trace/trace_format.h"

namespace {

// A file in memory with these bytes, read to its end.
void read(const std::string& bytes) {
  static const int fd = ::memfd_create("trace", MFD_CLOEXEC);
  CAIRN_CHECK(fd >= 0 && ::ftruncate(fd, 0) == 0);
  CAIRN_CHECK(::pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  auto source = cairn::open_trace("/proc/self/fd/" + std::to_string(fd));
  if (!source.is_ok()) return;
  cairn::TraceEvent event;
  const cairn::TraceNames& names = source.value()->names();
  while (source.value()->next(&event)) {
    CAIRN_CHECK(event.file < names.files.count());
    CAIRN_CHECK(event.process < names.processes.count());
  }
}

template <typename Bytes>
void append(std::string* file, const Bytes& bytes) {
  file->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string trace_of_blocks(cairn::fuzz::FuzzInput input) {
  std::string file;
  append(&file, cairn::make_trace_header(0));
  for (std::uint32_t number = 0; !input.is_at_end(); ++number) {
    cairn::TraceBlockHeader header;
    header.kind = static_cast<cairn::TraceBlockKind>(input.take<std::uint8_t>() % 4);
    header.entries = input.take<std::uint16_t>();
    const std::string_view raw = input.take_bytes(input.take<std::uint16_t>());
    header.stored_bytes = header.raw_bytes = static_cast<std::uint32_t>(raw.size());
    header.number = number;
    header.checksum =
        cairn::trace_checksum({reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size()});
    append(&file, cairn::make_block_header(header));
    file += raw;
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read(std::string(reinterpret_cast<const char*>(data), size));
  read(trace_of_blocks(cairn::fuzz::FuzzInput(data, size)));
  return 0;
}
