// SPDX-License-Identifier: Apache-2.0
#include "service/process/log_file.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "service/process/log.h"

namespace cairn {
namespace log {
namespace {

spdlog::level::level_enum library_level(Level level) {
  switch (level) {
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kCritical:
      return spdlog::level::critical;
  }
  return spdlog::level::critical;
}

}  // namespace

void write_line(Level level, fmt::string_view format, fmt::format_args values) noexcept {
  try {
    spdlog::log(library_level(level), fmt::vformat(format, values));
  } catch (const std::exception&) {
    spdlog::log(library_level(level), format);
  }
}

}  // namespace log

namespace node {
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

// Its sinks can be exchanged while others log.
const std::shared_ptr<spdlog::sinks::dist_sink_mt>& all_sinks() {
  static const auto kSinks = std::make_shared<spdlog::sinks::dist_sink_mt>();
  return kSinks;
}

spdlog::sink_ptr sink_for(const std::string& path) {
  try {
    return std::make_shared<spdlog::sinks::basic_file_sink_mt>(path, false);
  } catch (const spdlog::spdlog_ex&) {
    // The library speaks by exceptions; this is the only place where one can reach us.
    return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
}

}  // namespace

void open_log(const std::string& path) {
  all_sinks()->set_sinks({sink_for(path)});
  auto logger = std::make_shared<spdlog::logger>("cairn", all_sinks());
  logger->set_level(spdlog::level::info);
  logger->flush_on(spdlog::level::info);
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  spdlog::set_default_logger(logger);
}

void move_log(const std::string& path) {
  spdlog::sink_ptr sink = sink_for(path);
  sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  all_sinks()->set_sinks({std::move(sink)});
}

void close_log() { spdlog::default_logger()->flush(); }

void log_warning(const std::string& text) {
  log::warn("{}", text);
  Warnings& kept = warnings();
  const std::lock_guard lock(kept.mutex);
  if (std::find(kept.texts.begin(), kept.texts.end(), text) != kept.texts.end()) return;
  CAIRN_CHECK(kept.texts.size() <= kWarningsKept);
  if (kept.texts.size() == kWarningsKept) kept.texts.erase(kept.texts.begin());
  kept.texts.push_back(text);
}

std::vector<std::string> kept_warnings() {
  Warnings& kept = warnings();
  const std::lock_guard lock(kept.mutex);
  return kept.texts;
}

}  // namespace node
}  // namespace cairn
