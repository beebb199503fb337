// SPDX-License-Identifier: Apache-2.0
#include "multiprocess/test_client.h"
#include "memory/backing/posix_backing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "frontends/client/handshake.h"
#include "frontends/client/noticed_memory.h"
#include "frontends/client/question.h"
#include "frontends/client/slot_taking.h"

namespace cairn::testing {
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

using protocol::Type;

TestClient::~TestClient() {
  if (socket_ >= 0) ::close(socket_);
}

int TestClient::connect_to(const std::string& path) const {
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    ::close(socket);
    return -1;
  }
  return socket;
}

bool TestClient::attach(const std::string& socket_path, std::uint32_t run) {
  protocol::Hello hello;
  hello.run = run;
  hello.pid = ::getpid();
  std::strcpy(hello.command, "test-client");
  return attach_as(socket_path, hello);
}

bool TestClient::attach_as(const std::string& socket_path, const protocol::Hello& hello) {
  socket_path_ = socket_path;
  socket_ = connect_to(socket_path);
  if (socket_ < 0 || !send(&hello, sizeof hello, -1)) {
    refusal_ = "cannot connect";
    return false;
  }
  char bytes[protocol::kMessageBytesMax];
  iovec part{bytes, sizeof bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * (1 + kTiersMax))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t length = ::recvmsg(socket_, &header, MSG_CMSG_CLOEXEC);
  if (length != sizeof(protocol::Welcome)) {
    protocol::Refused refused;
    if (length == sizeof refused) std::memcpy(&refused, bytes, sizeof refused);
    refusal_ = length == sizeof refused ? refused.reason : "no answer";
    return false;
  }
  protocol::Welcome welcome;
  std::memcpy(&welcome, bytes, sizeof welcome);
  const cmsghdr* item = CMSG_FIRSTHDR(&header);
  std::array<int, 1 + kTiersMax> fds;
  fds.fill(-1);
  if (item != nullptr) std::memcpy(fds.data(), CMSG_DATA(item), item->cmsg_len - CMSG_LEN(0));
  std::array<int, kTiersMax> tiers;
  tiers.fill(-1);
  unsigned next = 2;
  for (unsigned tier = 1; tier < kTiersMax; ++tier) {
    if (welcome.shape.tier_bytes[tier] != 0) tiers[tier] = fds[next++];
  }
  auto memory = NodeMemory::attach(welcome.shape, fds[0], fds[1], tiers);
  if (!memory) {
    refusal_ = memory.status().message();
    return false;
  }
  memory_ = std::move(memory.value());
  memory_.owners().watch_with(this);
  connection_ = ServiceConnection::of(socket_);
  self_ = Owner(static_cast<std::uint16_t>(welcome.slot),
                static_cast<std::uint8_t>(welcome.generation));
  return true;
}

bool TestClient::claim(const std::string& socket_path, ClaimStep last) {
  socket_path_ = socket_path;
  socket_ = connect_to(socket_path);
  if (socket_ < 0) return false;
  const std::int32_t service = peer_process(socket_);
  const auto notice = read_notice(socket_path.c_str(), service);
  auto found = notice ? map_noticed(*notice) : std::nullopt;
  if (!found) return false;
  memory_ = std::move(found->memory);
  memory_.owners().watch_with(this);
  connection_ = ServiceConnection::of(socket_);
  claim_ = choose_offer(memory_, socket_, service);
  if (!claim_) return false;
  if (last == ClaimStep::kConnected) return true;
  if (say_hello(socket_, 0, claim_) < 0) return false;
  return last == ClaimStep::kGreeted || take();
}

bool TestClient::claim_as(const std::string& socket_path, const TestClient& other) {
  if (!claim(socket_path, ClaimStep::kConnected)) return false;
  claim_.slot = other.claim_.slot;
  claim_.number = other.claim_.number;
  return say_hello(socket_, 0, claim_) == 0;
}

bool TestClient::is_welcomed() const {
  Greeting greeting;
  if (await_welcome(socket_, &greeting) < 0) return false;
  for (unsigned index = 0; index < greeting.message.descriptor_count; ++index)
    ::close(greeting.message.descriptors[index]);
  return true;
}

bool TestClient::take() {
  self_ = take_slot(memory_, claim_, {::getpid(), 0});
  return static_cast<bool>(self_);
}

Actor TestClient::make_actor(unsigned shard) const {
  memory_.slot(self_.slot()).workers.store(1);
  Actor actor;
  actor.memory = &memory_;
  actor.self = self_;
  actor.counters = &memory_.slot(self_.slot()).shards[shard % ClientSlot::kShards];
  return actor;
}

bool TestClient::send(const void* message, std::size_t length, int fd) {
  iovec part{const_cast<void*>(message), length};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(item), &fd, sizeof fd);
  }
  return ::sendmsg(socket_, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(length);
}

bool TestClient::hand_over(ObjectIndex object, const Backing& backing) {
  const int fd = backing.descriptor();
  DescriptorReservation reservation(memory_.descriptor_room(), memory_.slot(self_.slot()).sending);
  if (!reservation || memory_.service_board().detached.load() != 0) return false;
  protocol::ObjectMessage message;
  message.header.type = Type::kObjectDescriptor;
  message.object = raw(object);
  message.descriptor = fd;
  if (!send(&message, sizeof message, fd)) return false;
  reservation.sent();
  memory_.objects().at(object).set(kObjectHandedOver);
  return true;
}

int TestClient::request_flush(ObjectIndex object, bool durable) {
  return ask(Type::kFlush, object, durable);
}

int TestClient::meet_unserved(ObjectIndex object) {
  return ask(Type::kMeetUnserved, object, false);
}

int TestClient::ask(Type type, ObjectIndex object, bool durable) const {
  protocol::Question question;
  question.type = type;
  question.object = object;
  question.durable = durable;
  int error = 0;
  if (ask_in_ring({memory_, self_, connection_, socket_path_.c_str()}, question, &error))
    return error;
  return ask_over_socket(socket_path_.c_str(), question, &error) ? error : -EIO;
}

void TestClient::discarded(ObjectIndex object) {
  protocol::ObjectMessage message;
  message.header.type = Type::kDiscarded;
  message.object = raw(object);
  (void)send(&message, sizeof message, -1);
}

bool TestClient::is_gone(Owner owner) const {
  return is_gone_with_service(memory_, connection_, self_, owner);
}

void TestClient::send_inherited() {
  protocol::Header header;
  header.type = Type::kInherited;
  (void)send(&header, sizeof header, -1);
}

void TestClient::send_declined() {
  protocol::Header header;
  header.type = Type::kDeclined;
  (void)send(&header, sizeof header, -1);
}

void TestClient::send_foreign(const char* command) {
  protocol::ForeignMessage message;
  std::strncpy(message.command, command, sizeof message.command - 1);
  (void)send(&message, sizeof message, -1);
}

void TestClient::send_bytes(const void* bytes, std::size_t length) {
  (void)send(bytes, length, -1);
}

OpenFile::OpenFile(TestClient& client, Actor& actor, const std::string& path, int flags)
    : client_(client), actor_(actor), may_write_((flags & O_ACCMODE) != O_RDONLY) {
  fd_ = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd_ < 0) return;
  file_ = std::make_unique<PosixBacking>(fd_, flags & O_ACCMODE);
  StoreStatus status;
  if (file_->status(&status) < 0) return;
  index_ = open_object(actor_, *file_, status, may_write_, &client_);
  if (index_ == ObjectIndex::kNone) return;
  DescriptionTable& descriptions = client_.memory().descriptions();
  description_ = descriptions.create(index_, static_cast<std::uint32_t>(flags));
  hold_ = descriptions.hold(description_, client_.self(), HoldKind::kDescription);
}

OpenFile::~OpenFile() {
  if (index_ != ObjectIndex::kNone) {
    DescriptionTable& descriptions = client_.memory().descriptions();
    const DescriptionTable::Released released = descriptions.release(hold_, client_.self());
    if (released.last) {
      descriptions.destroy(description_);
      (void)close_object(access(), may_write_);
    }
  }
  if (file_ != nullptr) file_->close_extra();
  if (fd_ >= 0) ::close(fd_);
}

ssize_t OpenFile::read(std::uint64_t offset, void* buffer, std::size_t length) {
  return read_object(access(), offset, buffer, length);
}

ssize_t OpenFile::write(std::uint64_t offset, const void* buffer, std::size_t length) {
  return write_object(access(), offset, buffer, length);
}

}  // namespace cairn::testing
