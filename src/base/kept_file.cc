// SPDX-License-Identifier: Apache-2.0
#include "base/kept_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

#include "base/private_file.h"

namespace cairn {
namespace {

static_assert(std::endian::native == std::endian::little);

Status invalid(std::string what) { return {StatusCode::kInvalid, std::move(what)}; }

int write_whole(const std::string& path, std::string_view bytes) {
  const int descriptor = open_new_file(path.c_str(), 0600);
  if (descriptor < 0) return -descriptor;
  int error_number = 0;
  while (!bytes.empty() && error_number == 0) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      error_number = errno;
    }
  }
  if (::close(descriptor) != 0 && error_number == 0) error_number = errno;
  return error_number;
}

}  // namespace

std::string seal(const KeptKind& kind, std::string_view value) {
  std::string bytes(kind.magic);
  append_bytes(&bytes, kind.version);
  bytes.append(value);
  append_bytes(&bytes, fnv1a(bytes));
  return bytes;
}

Result<std::string_view> unseal(const KeptKind& kind, std::string_view bytes) {
  const std::string noun(kind.noun);
  if (bytes.size() > kind.bytes_max) return invalid("is larger than any " + noun);
  if (!bytes.starts_with(kind.magic)) return invalid("is not a " + noun);
  KeptReader whole(bytes.substr(kind.magic.size()));
  // Before the sum: another version may be summed up in another way.
  const auto version = whole.take<std::uint32_t>();
  if (whole.is_short()) return invalid("is cut off");
  if (version != kind.version) {
    return Status(StatusCode::kIncompatible, "has version " + std::to_string(version) +
                                                 " where this Cairn writes " +
                                                 std::to_string(kind.version));
  }
  std::uint64_t sum = 0;
  if (whole.left() < kind.value_min + sizeof(sum)) return invalid("is cut off");
  const std::string_view summed = bytes.substr(0, bytes.size() - sizeof(sum));
  std::memcpy(&sum, bytes.data() + summed.size(), sizeof(sum));
  if (sum != fnv1a(summed)) return invalid("is damaged: its sum is wrong");
  return summed.substr(kind.magic.size() + sizeof(version));
}

Status save_kept(const std::string& path, std::string_view sealed) {
  const std::string beside = path + std::string(kKeptBeside);
  int error_number = write_whole(beside, sealed);
  if (error_number == 0 && ::rename(beside.c_str(), path.c_str()) != 0) error_number = errno;
  if (error_number == 0) return Status::ok();
  ::unlink(beside.c_str());
  return Status::from_errno(error_number, path);
}

Result<std::string> load_kept(const KeptKind& kind, const std::string& path) {
  // Whatever else bears the name, opening it is not to wait for it.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return Status::from_errno(errno, path);
  if (!is_written_by_user_alone(descriptor)) {
    ::close(descriptor);
    return Status(StatusCode::kDenied, path + " can be written by other users");
  }
  std::string bytes(kind.bytes_max + 1, '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = ::read(descriptor, bytes.data() + filled, bytes.size() - filled);
    if (count == 0) break;
    if (count > 0) {
      filled += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      const int error_number = errno;
      ::close(descriptor);
      return Status::from_errno(error_number, path);
    }
  }
  ::close(descriptor);
  bytes.resize(filled);
  return bytes;
}

}  // namespace cairn
