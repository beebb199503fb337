// SPDX-License-Identifier: Apache-2.0
#include "policy/orders/item_list.h"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "policy/orders/order_declaration.h"

namespace cairn {
namespace {

struct CloseList {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// The lines of a list that say something.
class ListLines {
 public:
  explicit ListLines(const std::string& path) : path_(path), status_(check_text_file(path)) {
    if (!status_) return;
    file_.reset(std::fopen(path.c_str(), "re"));
    if (file_ == nullptr) status_ = Status::from_errno(errno, "order: cannot open " + path);
  }

  // Returns: false at the end of the list and after an error, which status() tells apart.
  bool next() {
    while (status_.is_ok() && read_line()) {
      if (!line_.empty() && line_.back() == '\r') line_.pop_back();
      if (!line_.empty() && line_.front() != '#') return status_.is_ok();
    }
    return false;
  }
  const std::string& line() const { return line_; }
  const Status& status() const { return status_; }

  // Returns: the reason with the place.
  Status refusal(const std::string& reason) const {
    return Status(StatusCode::kInvalid,
                  "order: " + path_ + ":" + std::to_string(number_) + ": " + reason);
  }

 private:
  bool read_line() {
    line_.clear();
    ++number_;
    int letter = getc_unlocked(file_.get());
    if (letter == EOF) return check_end();
    for (; letter != EOF && letter != '\n'; letter = getc_unlocked(file_.get())) {
      if (letter == '\0' || line_.size() == kItemLineBytesMax) {
        status_ = refusal(letter == '\0' ? "this is no text; name a list with one item a line"
                                         : "the line is too long; write one item a line");
        return false;
      }
      line_.push_back(static_cast<char>(letter));
    }
    return letter != EOF || std::ferror(file_.get()) == 0 || check_end();
  }
  bool check_end() {
    if (std::ferror(file_.get()) != 0) {
      status_ = Status::from_errno(errno, "order: cannot read " + path_);
    }
    return false;
  }

  const std::string path_;
  std::unique_ptr<std::FILE, CloseList> file_;
  std::string line_;
  std::uint64_t number_ = 0;
  Status status_;
};

}  // namespace

Status check_text_file(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0)
    return Status::from_errno(errno, "order: cannot open " + path);
  if (S_ISREG(status.st_mode)) return Status::ok();
  return Status(StatusCode::kInvalid, "order: " + path + " is no regular file; name a text file");
}

Result<std::vector<std::uint32_t>> read_item_numbers(const std::string& path, std::uint64_t items) {
  CAIRN_CHECK(items > 0 && items <= kOrderItemsMax);
  ListLines lines(path);
  std::vector<std::uint32_t> numbers;
  while (lines.next()) {
    const std::string_view line = lines.line();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc{} || end != line.data() + line.size() || number >= items) {
      return lines.refusal("\"" + lines.line() + "\" is not the number of an item, 0 to " +
                           std::to_string(items - 1) + "; for a list of files declare lines=files");
    }
    if (numbers.size() == kOrderItemsMax) return lines.refusal("there are more than 2^31 lines");
    numbers.push_back(static_cast<std::uint32_t>(number));
  }
  if (!lines.status()) return lines.status();
  if (numbers.empty()) return lines.refusal("the list is empty; write one item a line");
  return numbers;
}

Result<std::vector<std::string>> read_item_files(const std::string& path) {
  ListLines lines(path);
  std::vector<std::string> names;
  std::size_t bytes = 0;
  while (lines.next()) {
    bytes += lines.line().size();
    if (bytes > kItemNameBytesMax) return lines.refusal("the names are longer than 1 GiB together");
    names.push_back(lines.line());
  }
  if (!lines.status()) return lines.status();
  if (names.empty()) return lines.refusal("the list is empty; write one name a line");
  return names;
}

}  // namespace cairn
