// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/file_handle.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "service/durable_log/log_record.h"

namespace cairn::durable {

namespace {

struct HandleRoom {
  alignas(file_handle) std::array<std::byte, sizeof(file_handle) + MAX_HANDLE_SZ> bytes{};
  file_handle* get() { return reinterpret_cast<file_handle*>(bytes.data()); }
};
static_assert(sizeof(int) + MAX_HANDLE_SZ <= kHandleBytesMax);

}  // namespace

std::vector<std::byte> handle_of(int fd) {
  HandleRoom room;
  room.get()->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(fd, "", room.get(), &mount, AT_EMPTY_PATH) != 0) return {};
  const int type = room.get()->handle_type;
  std::vector<std::byte> handle(sizeof type + room.get()->handle_bytes);
  std::memcpy(handle.data(), &type, sizeof type);
  std::memcpy(handle.data() + sizeof type, room.get()->f_handle, room.get()->handle_bytes);
  return handle;
}

int open_by_handle(int place, std::span<const std::byte> handle, int flags) {
  int type = 0;
  if (handle.size() <= sizeof type || handle.size() > sizeof type + MAX_HANDLE_SZ) return -ESTALE;
  HandleRoom room;
  std::memcpy(&type, handle.data(), sizeof type);
  room.get()->handle_type = type;
  room.get()->handle_bytes = static_cast<unsigned>(handle.size() - sizeof type);
  std::memcpy(room.get()->f_handle, handle.data() + sizeof type, handle.size() - sizeof type);
  const int fd = ::open_by_handle_at(place, room.get(), flags);
  return fd < 0 ? -errno : fd;
}

}  // namespace cairn::durable
