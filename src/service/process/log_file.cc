// SPDX-License-Identifier: Apache-2.0
#include "service/process/log_file.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "service/process/log.h"
#include "service/process/unique_fd.h"

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

// The file is the standard error of the node's processes as well, so it stays the same one.
class BoundedFile final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit BoundedFile(UniqueFd file) : file_(std::move(file)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    (void)!::write(file_.get(), line.data(), line.size());
    struct stat status{};
    if (::fstat(file_.get(), &status) == 0 &&
        static_cast<std::size_t>(status.st_size) > kLogBytesMax)
      leave_out_older(static_cast<std::size_t>(status.st_size));
  }
  void flush_() override {}

 private:
  // A death in between leaves the newest lines at the end all the same.
  void leave_out_older(std::size_t size) {
    CAIRN_CHECK(size > kLogBytesMax);
    std::string text(size, '\0');
    const ssize_t got = ::pread(file_.get(), text.data(), size, 0);
    const std::size_t half = text.find('\n', size - kLogBytesMax / 2);
    if (got != static_cast<ssize_t>(size) || half == std::string::npos) return;
    left_out_ +=
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(half), '\n') + 1;
    text.replace(0, half + 1, fmt::format("cairn: {} older lines were left out\n", left_out_));
    (void)::fcntl(file_.get(), F_SETFL, 0);
    const ssize_t put = ::pwrite(file_.get(), text.data(), text.size(), 0);
    if (put == static_cast<ssize_t>(text.size())) (void)!::ftruncate(file_.get(), put);
    (void)::fcntl(file_.get(), F_SETFL, O_APPEND);
  }

  const UniqueFd file_;
  std::ptrdiff_t left_out_ = 0;
};

spdlog::sink_ptr sink_for(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file) return std::make_shared<BoundedFile>(std::move(file));
  return std::make_shared<spdlog::sinks::stderr_sink_mt>();
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
