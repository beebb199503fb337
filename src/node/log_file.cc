// SPDX-License-Identifier: Apache-2.0
#include "node/log_file.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>

namespace cairn::node {
namespace {

constexpr std::size_t kWarningsKept = 16;

struct Warnings {
  std::mutex mutex;
  std::vector<std::string> texts;
};

Warnings& warnings() {
  static Warnings all;
  return all;
}

}  // namespace

void open_log(const std::string& path) {
  std::shared_ptr<spdlog::logger> logger;
  try {
    logger = std::make_shared<spdlog::logger>(
        "cairn", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path, false));
  } catch (const spdlog::spdlog_ex&) {
    // The library speaks by exceptions; this is the only place where one can reach us.
    logger = std::make_shared<spdlog::logger>("cairn",
                                              std::make_shared<spdlog::sinks::stderr_sink_mt>());
  }
  logger->set_level(spdlog::level::info);
  logger->flush_on(spdlog::level::info);
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  spdlog::set_default_logger(logger);
}

void close_log() { spdlog::default_logger()->flush(); }

void log_warning(const std::string& text) {
  spdlog::warn("{}", text);
  Warnings& kept = warnings();
  const std::lock_guard lock(kept.mutex);
  if (std::find(kept.texts.begin(), kept.texts.end(), text) != kept.texts.end()) return;
  if (kept.texts.size() == kWarningsKept) kept.texts.erase(kept.texts.begin());
  kept.texts.push_back(text);
}

std::vector<std::string> kept_warnings() {
  Warnings& kept = warnings();
  const std::lock_guard lock(kept.mutex);
  return kept.texts;
}

}  // namespace cairn::node
