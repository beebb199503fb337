// SPDX-License-Identifier: Apache-2.0
#include "service/training/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/state_directory.h"
#include "policy/regressions/model_terms.h"
#include "service/profiler/profile_json.h"

namespace cairn::training {
namespace {

using nlohmann::json;

constexpr int kNoDescriptor = -1;
constexpr mode_t kFileMode = 0600;
constexpr mode_t kOthersMayWrite = 0022;

json device_json(const PhysicalDevice& device) {
  return {{"latency", device.latency_seconds},
          {"queue_depth", device.queue_depth},
          {"thread_bandwidth", device.thread_bandwidth},
          {"peak_bandwidth", device.peak_bandwidth},
          {"knee", device.knee}};
}

// Throws json::exception where a field is missing or of another type.
PhysicalDevice device_of_json(const json& object) {
  PhysicalDevice device;
  device.latency_seconds = object.at("latency").get<double>();
  device.queue_depth = object.at("queue_depth").get<double>();
  device.thread_bandwidth = object.at("thread_bandwidth").get<double>();
  device.peak_bandwidth = object.at("peak_bandwidth").get<double>();
  device.knee = object.at("knee").get<double>();
  return device;
}

json plan_json(const TrainingPlan& plan) {
  return {{"budget_seconds", plan.budget_seconds},
          {"space_bytes", plan.space_bytes},
          {"request_bytes_min", plan.request_bytes_min},
          {"seed", plan.seed},
          {"reads", device_json(plan.reads)},
          {"writes", device_json(plan.writes)}};
}

TrainingPlan plan_of_json(const json& object) {
  TrainingPlan plan;
  plan.budget_seconds = object.at("budget_seconds").get<double>();
  plan.space_bytes = object.at("space_bytes").get<std::uint64_t>();
  plan.request_bytes_min = object.at("request_bytes_min").get<std::uint64_t>();
  plan.seed = object.at("seed").get<std::uint64_t>();
  plan.reads = device_of_json(object.at("reads"));
  plan.writes = device_of_json(object.at("writes"));
  return plan;
}

json finished_json(const FinishedExperiment& finished) {
  const Experiment& experiment = finished.experiment;
  return {{"index", finished.index},
          {"access", experiment.access == AccessKind::kRead ? "read" : "write"},
          {"threads", experiment.threads},
          {"request_bytes", experiment.request_bytes},
          {"requests", experiment.requests},
          {"address_range_bytes", experiment.address_range_bytes},
          {"seconds", finished.seconds},
          {"rounds", finished.rounds},
          {"spread", finished.spread},
          {"busy", finished.is_busy}};
}

FinishedExperiment finished_of_json(const json& object) {
  FinishedExperiment finished;
  finished.index = object.at("index").get<std::size_t>();
  finished.experiment.access =
      object.at("access").get<std::string>() == "write" ? AccessKind::kWrite : AccessKind::kRead;
  finished.experiment.threads = object.at("threads").get<std::uint64_t>();
  finished.experiment.request_bytes = object.at("request_bytes").get<std::uint64_t>();
  finished.experiment.requests = object.at("requests").get<std::uint64_t>();
  finished.experiment.address_range_bytes = object.at("address_range_bytes").get<std::uint64_t>();
  finished.seconds = object.at("seconds").get<double>();
  finished.rounds = object.at("rounds").get<unsigned>();
  finished.spread = object.at("spread").get<double>();
  finished.is_busy = object.at("busy").get<bool>();
  return finished;
}

bool is_possible(const FinishedExperiment& finished) {
  const Experiment& experiment = finished.experiment;
  return std::isfinite(finished.seconds) && finished.seconds > 0 && experiment.threads > 0 &&
         experiment.request_bytes > 0 && experiment.requests > 0 &&
         experiment.address_range_bytes > 0;
}

std::string remove_advice(const std::string& file) { return "; to train anew, remove " + file; }

// What file names may have without doubt.
std::string plain_name(const std::string& name) {
  std::string plain = name.empty() ? "unnamed" : name;
  for (char& letter : plain) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) == 0 && letter != '.' && letter != '_') letter = '_';
  }
  constexpr std::size_t kNameBytesMax = 80;
  return plain.substr(0, kNameBytesMax);
}

Result<std::string> read_all(int descriptor, const std::string& file) {
  std::string text;
  std::string part(std::size_t{64} << 10, '\0');
  while (true) {
    const ssize_t count =
        ::pread(descriptor, part.data(), part.size(), static_cast<off_t>(text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status::from_errno(errno, file);
    if (count == 0) return text;
    text.append(part, 0, static_cast<std::size_t>(count));
    if (text.size() > Journal::kFileBytesMax) {
      return Status(StatusCode::kInvalid,
                    file + ": is too large for a journal" + remove_advice(file));
    }
  }
}

Status check_file(int descriptor, const std::string& file) {
  struct stat state{};
  if (::fstat(descriptor, &state) != 0) return Status::from_errno(errno, file);
  if (!S_ISREG(state.st_mode)) {
    return {StatusCode::kInvalid, file + ": is not a regular file; remove it"};
  }
  if (state.st_uid != ::geteuid() || (state.st_mode & kOthersMayWrite) != 0) {
    return {StatusCode::kInvalid, file + ": other users may write it" + remove_advice(file)};
  }
  return Status::ok();
}

// Returns: the descriptor, with the lock.
Result<int> open_locked(const std::string& file) {
  const int error = make_directories(file.substr(0, file.rfind('/')));
  if (error != 0) return Status::from_errno(error, file.substr(0, file.rfind('/')));
  const int descriptor =
      ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, kFileMode);
  if (descriptor < 0) return Status::from_errno(errno, file);
  Status status = check_file(descriptor, file);
  if (status && ::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    status = {StatusCode::kRetry,
              file + ": another process trains this device; wait until it has ended"};
  }
  if (status) return descriptor;
  ::close(descriptor);
  return status;
}

}  // namespace

std::string Journal::file_for(const profiler::DeviceIdentity& identity,
                              const std::string& store_file) {
  const std::size_t slash = store_file.rfind('/');
  if (slash == std::string::npos) return {};
  return store_file.substr(0, slash + 1) + "training-" + plain_name(identity.host) + '-' +
         plain_name(identity.name) + ".jsonl";
}

Journal::Journal(std::string file, profiler::DeviceIdentity identity, int descriptor)
    : file_(std::move(file)), identity_(std::move(identity)), descriptor_(descriptor) {
  CAIRN_CHECK(!file_.empty());
}

Journal::Journal(Journal&& other) noexcept
    : file_(std::move(other.file_)),
      identity_(std::move(other.identity_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      plan_(std::move(other.plan_)),
      finished_(std::move(other.finished_)),
      unreadable_lines_(other.unreadable_lines_) {}

Journal::~Journal() {
  if (descriptor_ < 0) return;
  struct stat state{};
  if (::fstat(descriptor_, &state) == 0 && state.st_size == 0) ::unlink(file_.c_str());
  ::close(descriptor_);
}

Result<Journal> Journal::open(const std::string& file, const profiler::DeviceIdentity& identity) {
  CAIRN_CHECK(file.find('/') != std::string::npos);
  const Result<int> descriptor = open_locked(file);
  if (!descriptor) return descriptor.status();
  Journal journal(file, identity, *descriptor);
  CAIRN_RETURN_IF_ERROR(journal.load());
  return journal;
}

Result<Journal> Journal::read(const std::string& file, const profiler::DeviceIdentity& identity) {
  const int descriptor =
      ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return Status::from_errno(errno, file);
  const Status status = check_file(descriptor, file);
  Result<std::string> text = status ? read_all(descriptor, file) : Result<std::string>(status);
  ::close(descriptor);
  if (!text) return text.status();
  Journal journal(file, identity, kNoDescriptor);
  const auto whole = journal.take_lines(*text);
  if (!whole) return whole.status();
  return journal;
}

Status Journal::load() {
  const Result<std::string> text = read_all(descriptor_, file_);
  if (!text) return text.status();
  const auto whole = take_lines(*text);
  if (!whole) return whole.status();
  // The next line must not be glued to half of one.
  if (*whole < text->size() && ::ftruncate(descriptor_, static_cast<off_t>(*whole)) != 0) {
    return Status::from_errno(errno, file_);
  }
  return Status::ok();
}

Result<std::size_t> Journal::take_lines(const std::string& text) {
  // A text without any line end may be anybody's, so it is judged before it is cut off.
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (whole == 0 && !text.empty() && text.front() != '{') {
    return Status(StatusCode::kInvalid, file_ + ": is not a journal of a training; move it away");
  }
  for (std::size_t begin = 0; begin < whole;) {
    const std::size_t end = text.find('\n', begin);
    const std::string_view line(text.data() + begin, end - begin);
    if (begin == 0) {
      CAIRN_RETURN_IF_ERROR(read_header(line));
    } else {
      read_experiment(line);
    }
    begin = end + 1;
  }
  return whole;
}

Status Journal::read_header(std::string_view line) {
  const json header = json::parse(line, nullptr, false);
  if (!header.is_object() || !header.contains("cairn_training")) {
    return {StatusCode::kInvalid, file_ + ": is not a journal of a training; move it away"};
  }
  if (header["cairn_training"] != kVersion || header.value("equation", json()) != 8) {
    return {StatusCode::kIncompatible, file_ + ": was written by another version of Cairn (" +
                                           header["cairn_training"].dump() +
                                           "); go on with that version" + remove_advice(file_)};
  }
  const auto identity = profiler::identity_of_json(header.value("device", json()));
  if (!identity) {
    return {StatusCode::kInvalid,
            file_ + ": line 1: " + identity.status().message() + remove_advice(file_)};
  }
  if (!is_same_device(*identity, identity_)) {
    return {StatusCode::kIncompatible, file_ + ": was measured on another device of this name (" +
                                           identity->host + ", " + identity->name + ", " +
                                           identity->model + ")" + remove_advice(file_)};
  }
  try {
    plan_ = plan_of_json(header.at("plan"));
  } catch (const json::exception& problem) {
    return {StatusCode::kInvalid, file_ + ": line 1: " + problem.what() + remove_advice(file_)};
  }
  return Status::ok();
}

void Journal::read_experiment(std::string_view line) {
  const json object = json::parse(line, nullptr, false);
  try {
    const FinishedExperiment finished = finished_of_json(object);
    if (is_possible(finished)) {
      finished_.push_back(finished);
      return;
    }
  } catch (const json::exception&) {  // counted below
  }
  ++unreadable_lines_;
}

Status Journal::begin(const TrainingPlan& plan) {
  CAIRN_CHECK(!plan_.has_value());
  const json header = {{"cairn_training", kVersion},
                       {"equation", kSolidStateEquation.number},
                       {"device", profiler::identity_json(identity_)},
                       {"plan", plan_json(plan)}};
  CAIRN_RETURN_IF_ERROR(
      write_line(header.dump(-1, ' ', false, json::error_handler_t::replace) + '\n'));
  plan_ = plan;
  return Status::ok();
}

Status Journal::append(const FinishedExperiment& finished) {
  CAIRN_CHECK(plan_.has_value());
  CAIRN_CHECK(is_possible(finished));
  CAIRN_RETURN_IF_ERROR(write_line(finished_json(finished).dump() + '\n'));
  finished_.push_back(finished);
  return Status::ok();
}

// One write(2): a killed process leaves the line or a part of it, never two mixed.
Status Journal::write_line(const std::string& line) {
  CAIRN_CHECK(descriptor_ != kNoDescriptor);
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t count = ::write(descriptor_, line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status::from_errno(errno, file_);
    done += static_cast<std::size_t>(count);
  }
  if (::fdatasync(descriptor_) != 0) return Status::from_errno(errno, file_);
  return Status::ok();
}

}  // namespace cairn::training
