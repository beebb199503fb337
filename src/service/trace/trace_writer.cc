// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "service/trace/event_columns.h"
#include "service/trace/varint.h"

namespace cairn {
namespace {

// The most bytes of names that wait for a block; far below the size of a block.
constexpr std::size_t kNewNameBytes = std::size_t{1} << 20;
static_assert(kNewNameBytes + kTraceNameBytesMax + 16 <= kTraceBlockBytesMax);

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(const std::string& path,
                                                         const TraceWriterOptions& options) {
  if (options.events_per_block == 0 || options.events_per_block > kTraceEventsPerBlockMax) {
    return Status(StatusCode::kInvalid, "trace: a block has from 1 to " +
                                            std::to_string(kTraceEventsPerBlockMax) + " events");
  }
  if (options.compression_level < kCompressionLevelMin ||
      options.compression_level > kCompressionLevelMax) {
    return Status(StatusCode::kInvalid, "trace: compression levels go from " +
                                            std::to_string(kCompressionLevelMin) + " to " +
                                            std::to_string(kCompressionLevelMax));
  }
  const int flags =
      O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | (options.is_new ? O_EXCL : O_TRUNC);
  const int fd = ::open(path.c_str(), flags, 0644);
  if (fd < 0) return Status::from_errno(errno, "trace: cannot create " + path);
  std::unique_ptr<TraceWriter> writer(new TraceWriter(path, fd, options));
  if (Status status = writer->write_bytes(make_trace_header(options.start_unix_ns)); !status) {
    if (options.is_new) ::unlink(path.c_str());
    return status;
  }
  return writer;
}

TraceWriter::TraceWriter(std::string path, int fd, const TraceWriterOptions& options)
    : path_(std::move(path)),
      fd_(fd),
      compressor_(options.compression_level),
      events_per_block_(options.events_per_block) {}

TraceWriter::~TraceWriter() {
  if (fd_ >= 0) ::close(fd_);
}

Status TraceWriter::fail(Status status) {
  status_ = std::move(status);
  return status_;
}

Result<std::uint32_t> TraceWriter::file(std::string_view name) { return number_of(name, false); }
Result<std::uint32_t> TraceWriter::process(std::string_view name) { return number_of(name, true); }

Result<std::uint32_t> TraceWriter::number_of(std::string_view name, bool is_process) {
  CAIRN_RETURN_IF_ERROR(status_);
  if (name.size() > kTraceNameBytesMax) {
    return Status(StatusCode::kInvalid,
                  "trace: a name is longer than " + std::to_string(kTraceNameBytesMax) + " bytes");
  }
  NameTable& table = is_process ? names_.processes : names_.files;
  const std::uint32_t known = table.count();
  const std::uint32_t number = table.number_of(name);
  if (number < known) return number;
  encode_name(&new_names_, is_process, name);
  ++new_name_count_;
  if (new_names_.size() >= kNewNameBytes) CAIRN_RETURN_IF_ERROR(flush_names());
  return number;
}

Status TraceWriter::append(const TraceEvent& event) {
  CAIRN_RETURN_IF_ERROR(status_);
  if (event.file >= names_.files.count() || event.process >= names_.processes.count() ||
      static_cast<unsigned>(event.kind) >= kTraceKinds) {
    return Status(StatusCode::kInvalid,
                  "trace: an event of a file, a process or a kind without a "
                  "name; ask file() and process() for their numbers");
  }
  gathered_.push_back(event);
  CAIRN_CHECK(gathered_.size() <= events_per_block_);
  ++events_;
  return gathered_.size() < events_per_block_ ? Status::ok() : flush();
}

Status TraceWriter::flush() {
  CAIRN_RETURN_IF_ERROR(status_);
  // The names come first, for the events use them.
  CAIRN_RETURN_IF_ERROR(flush_names());
  if (gathered_.empty()) return Status::ok();
  CAIRN_RETURN_IF_ERROR(write_block(TraceBlockKind::kEvents, encode_events(gathered_),
                                    static_cast<std::uint32_t>(gathered_.size())));
  gathered_.clear();
  return Status::ok();
}

Status TraceWriter::flush_names() {
  if (new_name_count_ == 0) return Status::ok();
  CAIRN_RETURN_IF_ERROR(write_block(TraceBlockKind::kNames, new_names_, new_name_count_));
  new_names_.clear();
  new_name_count_ = 0;
  return Status::ok();
}

Status TraceWriter::finish() {
  CAIRN_RETURN_IF_ERROR(flush());
  TraceBytes total;
  put_varint(&total, events_);
  put_varint(&total, io_ns_);
  CAIRN_RETURN_IF_ERROR(write_block(TraceBlockKind::kEnd, total, 0));
  if (::close(std::exchange(fd_, -1)) != 0) {
    return fail(Status::from_errno(errno, "trace: cannot close " + path_));
  }
  status_ = Status(StatusCode::kInvalid, "trace: " + path_ + " is finished");
  return Status::ok();
}

Status TraceWriter::write_block(TraceBlockKind kind, const TraceBytes& raw, std::uint32_t entries) {
  CAIRN_CHECK(raw.size() <= kTraceBlockBytesMax);
  CAIRN_CHECK(fd_ >= 0);
  TraceBytes compressed;
  const bool is_compressed = compressor_.compress(raw, &compressed);
  const TraceBytes& stored = is_compressed ? compressed : raw;
  TraceBlockHeader header;
  header.kind = kind;
  header.coding = is_compressed ? TraceBlockCoding::kZstd : TraceBlockCoding::kStored;
  header.stored_bytes = static_cast<std::uint32_t>(stored.size());
  header.raw_bytes = static_cast<std::uint32_t>(raw.size());
  header.entries = entries;
  header.number = blocks_++;
  header.checksum = trace_checksum(stored);
  // In one piece, so that a writer that dies between two calls leaves whole blocks.
  const TraceBlockImage image = make_block_header(header);
  TraceBytes block(image.begin(), image.end());
  block.insert(block.end(), stored.begin(), stored.end());
  return write_bytes(block);
}

Status TraceWriter::write_bytes(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(Status::from_errno(errno, "trace: cannot write " + path_));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    file_bytes_ += static_cast<std::uint64_t>(written);
  }
  return Status::ok();
}

}  // namespace cairn
