// SPDX-License-Identifier: Apache-2.0
#include "cli/run/rescue_news.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cinttypes>
#include <climits>
#include <cstdio>
#include <memory>

#include "base/size_text.h"
#include "cli/node/control_socket.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

// Not by a stream: the locales that it brings cost each run some pages.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
File open_file(const std::string& path) { return {std::fopen(path.c_str(), "re"), std::fclose}; }

bool read_line(std::FILE* file, std::string* text) {
  char line[PATH_MAX + 1];
  if (file == nullptr || std::fgets(line, sizeof line, file) == nullptr) return false;
  *text = line;
  if (!text->empty() && text->back() == '\n') text->pop_back();
  return true;
}

// A line with the directory, then three numbers.
bool read_rescued(const std::string& path, RescueNews* news) {
  const File file = open_file(path);
  if (!read_line(file.get(), &news->directory)) return false;
  (void)std::fscanf(file.get(), "%" SCNu64 "%" SCNu64 "%" SCNu64, &news->files, &news->saved_bytes,
                    &news->lost_bytes);
  return true;
}

}  // namespace

std::optional<RescueNews> read_rescue_news(const NodePaths& node) {
  if (node_answers(node.control_socket)) return std::nullopt;
  RescueNews news;
  (void)read_line(open_file(node.directory + "/old-log").get(), &news.old_log);
  if (read_rescued(node.directory + "/rescued", &news)) return news;
  news.stored = ::access((node.directory + "/stored").c_str(), F_OK) == 0;
  return news.stored ? std::optional(news) : std::nullopt;
}

std::string durable_line(const NodePaths& node) {
  std::string tier;
  if (!read_line(open_file(node.directory + "/durable-tier").get(), &tier)) return {};
  return fmt::format(
      "what was made durable is in the durable tier: `cairn recover {}` stores it, but "
      "for files that programs have synced since the node died",
      printable(tier));
}

std::vector<std::string> rescue_lines(const std::string& node, const RescueNews& news) {
  std::vector<std::string> lines;
  if (!news.old_log.empty()) {
    const std::string tier = printable(news.old_log);
    lines.push_back(
        fmt::format("the durable tier in {} could not be told, and still has older bytes: `cairn "
                    "recover {}`, or the next node there, would put them over those that were "
                    "stored since",
                    tier, tier));
  }
  if (news.stored) {
    lines.push_back(
        fmt::format("the service of node {} was killed too often; a rescue has stored "
                    "everything, and programs that went on wrote directly",
                    node));
    return lines;
  }
  lines.push_back(fmt::format(
      "NOT STORED: the service of node {} was killed too often, and a rescue could not store {} "
      "of {} {}",
      node, format_size(news.saved_bytes + news.lost_bytes), news.files,
      news.files == 1 ? "file" : "files"));
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
