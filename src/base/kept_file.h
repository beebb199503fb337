// SPDX-License-Identifier: Apache-2.0
// A value that is kept in a file of its own: sealed, so that what is torn, damaged or of another
// version is seen to be that, and replaced as a whole.
//
// Format, all numbers little-endian: 8 characters that name the kind, its version (32 bits), the
// value, and an FNV-1a sum (64 bits) over all that. It is written beside and renamed, not synced:
// what is kept so can be done without.
//
// Errors name the file where they are about one. A missing file: kNotFound. A file of another kind,
// cut off or damaged: kInvalid. Another version: kIncompatible. A file that another user owns or
// may write: kDenied.
//
// Thread safety: pure functions and the file system. One thread saves a file at a time.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/fnv1a.h"
#include "base/status.h"

namespace cairn {

struct KeptKind {
  std::string_view noun;   // "heat map"
  std::string_view magic;  // 8 characters
  std::uint32_t version = 1;
  std::size_t value_min = 0;  // bytes; what is shorter is cut off
  std::size_t bytes_max = 0;  // of the whole file; nobody looks at one that is larger
};

// Files that are being written end with this.
inline constexpr std::string_view kKeptBeside = ".new";

std::string seal(const KeptKind& kind, std::string_view value);
// Returns: the value, a part of `bytes`.
Result<std::string_view> unseal(const KeptKind& kind, std::string_view bytes);

Status save_kept(const std::string& path, std::string_view sealed);
// Whole, still sealed; cut off one byte behind what the kind may have.
Result<std::string> load_kept(const KeptKind& kind, const std::string& path);

template <typename T>
void append_bytes(std::string* bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::array<char, sizeof(T)> raw_bytes;
  std::memcpy(raw_bytes.data(), &value, sizeof(T));
  bytes->append(raw_bytes.data(), raw_bytes.size());
}

// Takes values off the front; remembers when there was not enough.
class KeptReader {
 public:
  explicit KeptReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (rest_.size() < sizeof(T)) {
      is_short_ = true;
      rest_ = {};
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::size_t left() const { return rest_.size(); }
  bool is_short() const { return is_short_; }
  bool is_at_end() const { return rest_.empty() && !is_short_; }

 private:
  std::string_view rest_;
  bool is_short_ = false;
};

}  // namespace cairn
