// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_reader.h"

#include <cerrno>
#include <utility>

#include "service/trace/event_columns.h"
#include "service/trace/varint.h"

namespace cairn {

Result<std::unique_ptr<TraceReader>> TraceReader::open(const std::string& path) {
  StdioFile file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) return Status::from_errno(errno, "trace: cannot open " + path);
  std::unique_ptr<TraceReader> reader(new TraceReader(path, std::move(file)));
  CAIRN_RETURN_IF_ERROR(reader->read_header());
  return reader;
}

TraceReader::TraceReader(std::string path, StdioFile file)
    : path_(std::move(path)), file_(std::move(file)) {}

Status TraceReader::read_header() {
  TraceHeaderImage image{};
  const std::size_t bytes = read_bytes(image);
  CAIRN_RETURN_IF_ERROR(status_);
  const std::string place = "trace: " + path_ + ": at byte ";
  if (bytes < image.size()) {
    return Status(StatusCode::kInvalid,
                  place + std::to_string(bytes) + ": the file ends within the header of a trace");
  }
  const ReadTraceHeader header = read_trace_header(image);
  start_unix_ns_ = header.start_unix_ns;
  version_ = header.version;
  switch (header.fault) {
    case TraceHeaderFault::kNone:
      break;
    case TraceHeaderFault::kMagic:
      return Status(StatusCode::kInvalid, place + "0: this is not a trace of Cairn");
    case TraceHeaderFault::kVersion:
      return Status(StatusCode::kIncompatible,
                    place + "8: the trace is of version " + std::to_string(header.version) +
                        "; this program reads versions " + std::to_string(kTraceVersionFirst) +
                        " to " + std::to_string(kTraceVersion));
    case TraceHeaderFault::kDamaged:
      return Status(StatusCode::kInvalid, place + "0: the header of the trace is damaged");
  }
  return Status::ok();
}

bool TraceReader::next(TraceEvent* event) {
  while (next_ == block_.size()) {
    if (is_over_ || !read_block()) {
      is_over_ = true;
      return false;
    }
  }
  *event = block_[next_++];
  return true;
}

std::size_t TraceReader::read_bytes(std::span<std::uint8_t> target) {
  const std::size_t bytes = std::fread(target.data(), 1, target.size(), file_.get());
  position_ += bytes;
  if (bytes < target.size() && std::ferror(file_.get()) != 0) {
    status_ = Status::from_errno(errno, "trace: cannot read " + path_);
  }
  return bytes;
}

bool TraceReader::damaged(const std::string& reason) {
  status_ = Status(StatusCode::kInvalid, "trace: " + path_ + ": at byte " +
                                             std::to_string(block_begin_) + ": block " +
                                             std::to_string(blocks_) + " is corrupt: " + reason);
  return false;
}

bool TraceReader::cut_off() {
  if (status_) {
    warning_ = "trace: " + path_ + ": the end is missing: the file was cut off at byte " +
               std::to_string(position_) + ", and " + std::to_string(events_) +
               " events before byte " + std::to_string(block_begin_) + " are whole";
  }
  return false;
}

bool TraceReader::read_block() {
  block_.clear();
  next_ = 0;
  block_begin_ = position_;
  TraceBlockImage image{};
  if (read_bytes(image) < image.size()) return cut_off();
  TraceBlockHeader header;
  if (const char* fault = read_block_header(image, &header); fault != nullptr) {
    return damaged(fault);
  }
  if (header.number != blocks_) {
    return damaged("it is numbered " + std::to_string(header.number) +
                   ", so that some are missing");
  }
  if (!read_payload(header) || !take_block(header)) return false;
  ++blocks_;
  return true;
}

bool TraceReader::read_payload(const TraceBlockHeader& header) {
  stored_.resize(header.stored_bytes);
  if (read_bytes(stored_) < stored_.size()) return cut_off();
  if (trace_checksum(stored_) != header.checksum) return damaged("its checksum is another one");
  if (header.coding == TraceBlockCoding::kStored) {
    std::swap(raw_, stored_);
    return true;
  }
  if (decompressor_.decompress(stored_, header.raw_bytes, &raw_)) return true;
  return damaged("it cannot be decompressed");
}

bool TraceReader::take_block(const TraceBlockHeader& header) {
  switch (header.kind) {
    case TraceBlockKind::kNames:
      return take_names(header.entries);
    case TraceBlockKind::kEvents:
      return take_events(header.entries);
    case TraceBlockKind::kEnd:
      break;
  }
  return take_end();
}

bool TraceReader::take_names(std::uint32_t count) {
  std::vector<NewName> names;
  if (!decode_names(raw_, count, &names)) return damaged("its names cannot be made out");
  for (NewName& name : names) {
    (name.is_process ? names_.processes : names_.files).append(std::move(name.name));
  }
  return true;
}

bool TraceReader::take_events(std::uint32_t count) {
  if (count > kTraceEventsPerBlockMax || !decode_events(raw_, count, &block_)) {
    block_.clear();
    return damaged("its events cannot be made out");
  }
  for (const TraceEvent& event : block_) {
    if (event.file < names_.files.count() && event.process < names_.processes.count()) continue;
    block_.clear();
    return damaged("it has an event of a file or a process that was not named");
  }
  events_ += block_.size();
  return true;
}

// Returns: false, for nothing is to come.
bool TraceReader::take_end() {
  std::span<const std::uint8_t> rest(raw_);
  std::uint64_t total = 0;
  const bool is_whole =
      take_varint(&rest, &total) && (!has_syncs() || take_varint(&rest, &io_ns_)) && rest.empty();
  if (!is_whole) return damaged("its end cannot be made out");
  if (total != events_) {
    return damaged("it says that there are " + std::to_string(total) + " events, not " +
                   std::to_string(events_));
  }
  block_begin_ = position_;
  std::uint8_t more = 0;
  if (read_bytes(std::span(&more, 1)) == 0) return false;
  ++blocks_;
  return damaged("it stands behind the end of the trace");
}

}  // namespace cairn
