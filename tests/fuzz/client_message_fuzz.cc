// SPDX-License-Identifier: Apache-2.0
// A message on client.sock as a hostile client sends it: count of descriptors (one byte), then the
// bytes, through a real socket. Each message that is understood is sound, and no descriptor is
// left. A message of an older version is sent as one of the present, so that the corpus keeps its
// worth; a later version is a stranger's.
#include "service/attachment/client_message.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "fuzz/fuzz_input.h"

namespace {

using namespace cairn;
using namespace cairn::node;

constexpr std::uint32_t kObjects = 16;
constexpr std::uint32_t kDescriptions = 32;

struct Scene {
  Scene() {
    CAIRN_CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
    objects[3].set(kObjectLive);
  }
  int sockets[2] = {-1, -1};
  std::array<Object, kObjects> objects{};
  ObjectBoard board{};
  UnservedBoard unserved{};
  ObjectTable table{objects.data(), kObjects, HashLines(), &board, &unserved};
};

struct IsSound {
  const Scene& scene;
  bool is_live(ObjectIndex object) const {
    return raw(object) != 0 && raw(object) < kObjects &&
           scene.objects[raw(object)].has(kObjectLive);
  }
  static bool is_text(const std::string& text) {
    return text.size() < protocol::kMessageBytesMax &&
           text.find_first_of(std::string("\0\n\x1b", 3)) == std::string::npos;
  }
  bool operator()(const message::Hello& it) const { return is_text(it.command); }
  bool operator()(const message::ObjectDescriptor& it) const { return is_live(it.object); }
  bool operator()(const message::Discarded& it) const {
    return raw(it.object) != 0 && raw(it.object) < kObjects;
  }
  bool operator()(const message::ArrayRead& it) const {
    return is_live(it.object) && it.array.bytes() != 0 && !it.box.is_empty() &&
           arrays::whole(it.array.shape).contains(it.box);
  }
  bool operator()(const message::PackedRead& it) const {
    return is_live(it.object) && it.array.grid().has_value() && it.array.chunk_bytes() != 0 &&
           !it.array.filters.all().empty() && !it.box.is_empty() &&
           arrays::whole(it.array.shape).contains(it.box);
  }
  bool operator()(const message::ArrayNews& it) const {
    const bool has_cells =
        it.news.shape.size() == 0 || arrays::whole(it.news.shape).cells().value_or(0) != 0;
    return is_live(it.object) && is_text(it.news.name) && has_cells &&
           it.news.layout < arrays::Layout::kCount &&
           it.news.unfit < arrays::LeftReason::kConversion;
  }
  bool operator()(const message::Foreign& it) const {
    return is_text(it.command) && is_text(it.reason);
  }
  bool operator()(const message::Flush& it) const { return is_live(it.object); }
  bool operator()(const message::MeetUnserved& it) const { return is_live(it.object); }
  bool operator()(const message::Unserved& it) const {
    return is_text(it.command) && it.reason < protocol::UnservedReason::kCount;
  }
  bool operator()(const message::KeepThrough& it) const {
    return it.told.description < kDescriptions;
  }
  template <typename Other>
  bool operator()(const Other&) const {
    return true;
  }
};

void send(int socket, std::string_view bytes, std::size_t descriptors) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptors != 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors);
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(int) * descriptors);
    for (std::size_t at = 0; at < descriptors; ++at)
      std::memcpy(CMSG_DATA(item) + at * sizeof socket, &socket, sizeof socket);
  }
  (void)!::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::string of_present_version(std::string_view bytes) {
  std::string message(bytes);
  protocol::Header header;
  if (message.size() < sizeof header) return message;
  std::memcpy(&header, message.data(), sizeof header);
  if (header.version < protocol::kVersion) header.version = protocol::kVersion;
  std::memcpy(message.data(), &header, sizeof header);
  return message;
}

int next_descriptor() {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(fd);
  return fd;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Scene scene;
  const int first_free = next_descriptor();
  fuzz::FuzzInput input(data, size);
  const std::size_t descriptors = input.take<std::uint8_t>() % 8;
  send(scene.sockets[0], of_present_version(input.rest()), descriptors);
  {
    Datagram datagram;
    if (receive_datagram(scene.sockets[1], 99, Look::kTake, &datagram) == Received::kDatagram)
      CAIRN_CHECK(
          std::visit(IsSound{scene}, decode(std::move(datagram), scene.table, kDescriptions)));
  }
  CAIRN_CHECK(next_descriptor() == first_free);
  return 0;
}
