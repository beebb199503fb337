// SPDX-License-Identifier: Apache-2.0
#include "service/trace/text_input.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn {
namespace {

constexpr std::size_t kInputBufferBytes = 2 * kTextLineBytesMax;

}  // namespace

Result<std::unique_ptr<TextInput>> TextInput::open(const std::string& path) {
  StdioFile file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) return Status::from_errno(errno, "trace: cannot open " + path);
  std::unique_ptr<TextInput> input(new TextInput(path, std::move(file)));
  (void)input->peek(1);
  if (!input->status_) return input->status_;
  return input;
}

TextInput::TextInput(std::string path, StdioFile file)
    : path_(std::move(path)), file_(std::move(file)), buffer_(kInputBufferBytes) {
  compressed_.resize(kInputBufferBytes);
  compressed_unread_ = std::span(compressed_).first(read_file(compressed_));
  if (StreamDecompressor::begins(compressed_unread_)) {
    decompressor_ = std::make_unique<StreamDecompressor>();
    return;
  }
  end_ = compressed_unread_.size();
  std::swap(buffer_, compressed_);
  compressed_ = {};
  compressed_unread_ = {};
}

std::size_t TextInput::read_file(std::span<std::uint8_t> target) {
  const std::size_t bytes = std::fread(target.data(), 1, target.size(), file_.get());
  if (bytes == 0 && std::ferror(file_.get()) != 0) {
    status_ = Status::from_errno(errno, "trace: cannot read " + path_);
  }
  return bytes;
}

// Returns: 0 at the end only, or after an error.
std::size_t TextInput::read_compressed(std::span<std::uint8_t> target) {
  while (status_) {
    if (compressed_unread_.empty() && !is_output_pending_) {
      compressed_unread_ = std::span(compressed_).first(read_file(compressed_));
      if (compressed_unread_.empty()) {
        if (status_ && !decompressor_->is_at_frame_end()) {
          status_ = Status(
              StatusCode::kInvalid,
              "trace: " + path_ + " ends in the middle of its compressed data; copy it again");
        }
        return 0;
      }
    }
    auto bytes = decompressor_->decompress(&compressed_unread_, target);
    if (!bytes) {
      status_ = Status(bytes.status().code(), "trace: " + path_ + ": " + bytes.status().message());
      return 0;
    }
    is_output_pending_ = *bytes == target.size() && !decompressor_->is_at_frame_end();
    if (*bytes > 0) return *bytes;
  }
  return 0;
}

void TextInput::read_more() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const std::span<std::uint8_t> room = std::span(buffer_).subspan(end_);
  const std::size_t bytes = decompressor_ ? read_compressed(room) : read_file(room);
  if (bytes == 0) is_at_end_ = true;
  end_ += bytes;
}

std::string_view TextInput::peek(std::size_t bytes) {
  while (!is_at_end_ && end_ - begin_ < bytes) read_more();
  return unread().substr(0, bytes);
}

bool TextInput::next_line(std::string_view* line) {
  std::size_t length = unread().find('\n');
  while (length == std::string_view::npos && !is_at_end_ && end_ - begin_ <= kTextLineBytesMax) {
    read_more();
    length = unread().find('\n');
  }
  ++line_number_;
  const bool is_last = length == std::string_view::npos;
  if (is_last && (!status_ || begin_ == end_)) return false;
  if (is_last) length = end_ - begin_;
  if (length > kTextLineBytesMax) {
    status_ =
        Status(StatusCode::kInvalid, "trace: " + place() + "the line is too long for a trace");
    return false;
  }
  *line = unread().substr(0, length);
  begin_ += length + (is_last ? 0 : 1);
  if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
  return true;
}

}  // namespace cairn
