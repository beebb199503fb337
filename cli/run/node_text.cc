// SPDX-License-Identifier: Apache-2.0
#include "cli/run/node_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "cli/terminal/failure.h"

namespace cairn::cli {
namespace {

std::string read_whole(const std::string& path) {
  std::string text;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return text;
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while ((count = ::read(descriptor, buffer.data(), buffer.size())) > 0 ||
         (count < 0 && errno == EINTR)) {
    if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
  }
  ::close(descriptor);
  return text;
}

// The first line says who wrote the text.
void refuse_other_version(const NodePaths& node, std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  constexpr std::string_view kMark = "written by cairn ";
  const size_t at = first.find(kMark);
  if (at == std::string_view::npos) return;
  const std::string_view rest = first.substr(at + kMark.size());
  const std::string_view version = rest.substr(0, rest.find(' '));
  if (version == CAIRN_VERSION) return;
  throw Failure(fmt::format("node {} is of Cairn {}, this command is of {}", node.name, version,
                            CAIRN_VERSION),
                fmt::format("use the command of the same version, or renew the node: `cairn down "
                            "--node {0}`, `cairn up --name {0}`",
                            node.name));
}

}  // namespace

NodeText read_node_text(const NodePaths& node) {
  NodeText read;
  read.text = read_whole(node.config_file);
  refuse_other_version(node, read.text);
  const auto holds = [&read](const char* line) {
    return read.text.find(line) != std::string::npos;
  };
  read.has_scratch = !holds("\n  scratch: []");
  read.has_filter = !holds("directories: []") || !holds("exclude: []");
  return read;
}

}  // namespace cairn::cli
