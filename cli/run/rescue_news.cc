// SPDX-License-Identifier: Apache-2.0
#include "cli/run/rescue_news.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "base/size_text.h"
#include "cli/node/control_socket.h"
#include "cli/terminal/output.h"

namespace cairn::cli {

std::optional<RescueNews> read_rescue_news(const NodePaths& node) {
  if (node_answers(node.control_socket)) return std::nullopt;
  RescueNews news;
  std::ifstream stream(node.directory + "/rescued");
  if (std::getline(stream, news.directory)) {
    stream >> news.files >> news.saved_bytes >> news.lost_bytes;
    return news;
  }
  news.stored = ::access((node.directory + "/stored").c_str(), F_OK) == 0;
  return news.stored ? std::optional(news) : std::nullopt;
}

std::vector<std::string> rescue_lines(const std::string& node, const RescueNews& news) {
  if (news.stored) {
    return {
        fmt::format("the service of node {} was killed too often; a rescue has stored "
                    "everything, and programs that went on wrote directly",
                    node)};
  }
  std::vector<std::string> lines = {fmt::format(
      "NOT STORED: the service of node {} was killed too often, and a rescue could not store {} "
      "of {} {}",
      node, format_size(news.saved_bytes + news.lost_bytes), news.files,
      news.files == 1 ? "file" : "files")};
  if (news.lost_bytes != 0)
    lines.push_back(fmt::format("  {} of it are lost", format_size(news.lost_bytes)));
  if (!news.directory.empty()) {
    lines.push_back(fmt::format("  {} of it are in {}, listed in {}/list",
                                format_size(news.saved_bytes), printable(news.directory),
                                printable(news.directory)));
    lines.push_back(
        fmt::format("  `cairn rescue {}` puts it in its place when that is possible again",
                    printable(news.directory)));
  }
  return lines;
}

}  // namespace cairn::cli
