// SPDX-License-Identifier: Apache-2.0
#include "cli/node/control_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/byte_text.h"
#include "cli/node/control_socket.h"
#include "cli/node/json_fields.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

// A reply is at most a status with 100 unstored files and 16384 clients; a longer line is not ours.
constexpr size_t kLineSizeMax = size_t{16} << 20;
// In front of the end of a line that a service did not live to finish, as its successor marks it.
constexpr char kCancel = '\x18';
// A service that is there answers most requests well within this.
constexpr int kSlowMs = 2000;

// Whether nothing that the request asks for takes its time.
bool is_answered_at_once(const Json& request) {
  const std::string command = text_field(request, "command");
  if (command == "run-begin") return !request.contains("reserve") && !request.contains("rules");
  return command == "status" || command == "config" || command == "explain";
}

// Command lines and names of files hold bytes that are no UTF-8.
Json with_texts(const Json& value) {
  if (value.is_string()) return text_of_bytes(value.get_ref<const std::string&>());
  Json texts = value;
  if (value.is_structured()) {
    for (Json& part : texts) part = with_texts(part);
  }
  return texts;
}

}  // namespace

ControlClient::ControlClient(const NodePaths& node) : node_(node) {
  descriptor_ = connect_to_node(node.control_socket);
  if (descriptor_ < 0) {
    const int error = errno;
    if (error == EACCES || error == EPERM) {
      throw Failure(fmt::format("node {} in {} belongs to another user", node.name, node.run_root),
                    "a node serves its own user only; start your own with `cairn up --name NAME`");
    }
    fail_unknown_node(node);
  }
  // The socket of another user's node can be reachable for root; the kernel says who listens.
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(descriptor_, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
      peer.uid != ::geteuid()) {
    ::close(descriptor_);
    throw Failure(fmt::format("node {} belongs to user {}, not to {}", node.name,
                              user_name(peer.uid), user_name(::geteuid())),
                  "a node serves its own user only; start your own with `cairn up --name NAME`");
  }
}

ControlClient::~ControlClient() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ControlClient::ControlClient(ControlClient&& other) noexcept
    : node_(std::move(other.node_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      watched_descriptor_(other.watched_descriptor_),
      received_(std::move(other.received_)),
      last_number_(other.last_number_),
      unanswered_(std::move(other.unanswered_)),
      has_said_slow_(other.has_said_slow_) {}

void ControlClient::fail_disconnected() const {
  throw Failure(fmt::format("the service of node {} closed the connection", node_.name),
                fmt::format("its log is {}", node_.log_file));
}

bool ControlClient::read_line(const ProgressCallback& progress, std::string* line) {
  size_t searched = 0;
  while (true) {
    const size_t end = received_.find('\n', searched);
    if (end != std::string::npos) {
      *line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return true;
    }
    searched = received_.size();
    if (received_.size() > kLineSizeMax) fail_disconnected();
    std::array<pollfd, 2> ready = {{{.fd = descriptor_, .events = POLLIN, .revents = 0},
                                    {.fd = watched_descriptor_, .events = POLLIN, .revents = 0}}};
    const bool is_impatient = unanswered_ && unanswered_->is_answered_at_once && !has_said_slow_;
    const int events = ::poll(ready.data(), ready.size(), is_impatient ? kSlowMs : -1);
    if (events < 0) {
      if (errno == EINTR) continue;
      fail_disconnected();
    }
    if (events == 0) say_that_nobody_answers();
    if (ready[1].revents != 0 && progress && !progress(Json())) return false;
    if (ready[0].revents == 0) continue;
    std::array<char, 4096> buffer{};
    const ssize_t count = ::recv(descriptor_, buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_disconnected();
    received_.append(buffer.data(), static_cast<size_t>(count));
  }
}

// The connection is open, so the node is there: a service is being started in a dead one's place,
// or has very much to do.
void ControlClient::say_that_nobody_answers() {
  has_said_slow_ = true;
  say(fmt::format("node {} does not answer yet; its service may be starting again", node_.name));
}

void ControlClient::send(const Json& request) {
  Json numbered = with_texts(request);
  numbered["id"] = ++last_number_;
  unanswered_ = {last_number_, numbered.dump() + "\n", is_answered_at_once(request)};
  send_text(unanswered_->text);
}

void ControlClient::send_text(const std::string& text) {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t count = ::send(descriptor_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    // A service that takes no request has said why before it closed the connection.
    if (count < 0 && errno == EPIPE) return;
    if (count <= 0) fail_disconnected();
    sent += static_cast<size_t>(count);
  }
}

bool ControlClient::take_aside(const std::string& line, const Json& reply) {
  if (!line.empty() && line.back() == kCancel) return true;
  if (text_field(reply, "kind") == "restarted") {
    if (unanswered_) send_text(unanswered_->text);
    return true;
  }
  // An answer that nobody waits for any more, or the second to what two services have answered.
  const uint64_t number = unsigned_field(reply, "id");
  return number != 0 && (!unanswered_ || unanswered_->number != number);
}

Json ControlClient::receive(const ProgressCallback& progress) {
  std::string line;
  while (read_line(progress, &line)) {
    const Json reply = Json::parse(line, nullptr, false);
    if (take_aside(line, reply)) continue;
    if (!reply.is_object()) {
      throw Failure(
          fmt::format("node {} answered with something that is not JSON", node_.name),
          "is its service of the same Cairn version? `cairn down` and `cairn up` renew it");
    }
    const std::string kind = text_field(reply, "kind");
    if (kind == "progress") {
      if (progress && !progress(reply)) return {};
      continue;
    }
    unanswered_.reset();
    if (kind == "error") throw Failure(text_field(reply, "message"), text_field(reply, "remedy"));
    return reply;
  }
  return {};
}

}  // namespace cairn::cli
