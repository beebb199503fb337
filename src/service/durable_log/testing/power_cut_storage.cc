// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/testing/power_cut_storage.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cairn::durable {

namespace {

void put(std::vector<std::byte>& to, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (to.size() < offset + bytes.size()) to.resize(offset + bytes.size());
  if (!bytes.empty()) std::memcpy(to.data() + offset, bytes.data(), bytes.size());
}

}  // namespace

class PowerCutFile final : public LogFile {
 public:
  PowerCutFile(PowerCutDisk& disk, PowerCutDisk::ContentPointer content)
      : disk_(disk), content_(std::move(content)), power_(disk.power_) {}
  ~PowerCutFile() override {
    const std::lock_guard lock(disk_.mutex_);
    if (holds_lock_) content_->is_locked = false;
  }

  std::int64_t size() override {
    const std::lock_guard lock(disk_.mutex_);
    return static_cast<std::int64_t>(content_->now.size());
  }
  std::int64_t read(std::span<std::byte> out, std::uint64_t offset) override {
    const std::lock_guard lock(disk_.mutex_);
    if (is_dead()) return -EIO;
    if (offset >= content_->now.size()) return 0;
    const std::size_t bytes = std::min(out.size(), content_->now.size() - offset);
    std::memcpy(out.data(), content_->now.data() + offset, bytes);
    return static_cast<std::int64_t>(bytes);
  }
  int write(std::span<const std::byte> bytes, std::uint64_t offset) override {
    const testing::FaultScript::Fate fate = disk_.script_.next(PowerCutDisk::kWrite);
    if (fate.error != 0 && fate.bytes_max == 0) return fate.error;
    if (fate.bytes_max < bytes.size()) bytes = bytes.first(fate.bytes_max);
    const std::lock_guard lock(disk_.mutex_);
    if (is_dead()) return -EIO;
    const int error = disk_.operate();
    // A write that meets the end of the power may survive in part.
    put(content_->now, offset, bytes);
    content_->unflushed.push_back({offset, {bytes.begin(), bytes.end()}});
    return error != 0 ? error : fate.error;
  }
  int flush() override {
    const testing::FaultScript::Fate fate = disk_.script_.next(PowerCutDisk::kFlush);
    if (fate.error != 0) return fate.error;
    const std::lock_guard lock(disk_.mutex_);
    if (is_dead()) return -EIO;
    if (const int error = disk_.operate(); error != 0) return error;
    if (disk_.flush_error_ != 0) return -disk_.flush_error_;
    content_->durable = content_->now;
    content_->unflushed.clear();
    return 0;
  }
  int lock() override {
    const std::lock_guard lock(disk_.mutex_);
    if (content_->is_locked) return -EWOULDBLOCK;
    content_->is_locked = holds_lock_ = true;
    return 0;
  }

 private:
  bool is_dead() const { return power_ != disk_.power_ || disk_.operations_ > disk_.cut_at_; }

  PowerCutDisk& disk_;
  PowerCutDisk::ContentPointer content_;
  std::uint64_t power_;
  bool holds_lock_ = false;
};

class PowerCutStorage final : public LogStorage {
 public:
  explicit PowerCutStorage(PowerCutDisk& disk) : disk_(disk) {}

  std::string where() const override { return "disk"; }
  Result<std::vector<std::string>> names() override {
    const std::lock_guard lock(disk_.mutex_);
    std::vector<std::string> found;
    for (const auto& entry : disk_.names_) found.push_back(entry.first);
    return found;
  }
  Result<std::unique_ptr<LogFile>> open(const std::string& name, OpenHow how) override {
    const std::lock_guard lock(disk_.mutex_);
    if (how == OpenHow::kCreate) {
      if (const int error = disk_.operate(); error != 0) return Status::from_errno(-error, name);
      auto made = std::make_shared<PowerCutDisk::Content>();
      disk_.names_[name] = made;
      disk_.unflushed_names_.push_back({name, made});
    }
    const auto found = disk_.names_.find(name);
    if (found == disk_.names_.end()) return Status(StatusCode::kNotFound, name, ENOENT);
    return std::unique_ptr<LogFile>(std::make_unique<PowerCutFile>(disk_, found->second));
  }
  int rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(disk_.mutex_);
    if (const int error = disk_.operate(); error != 0) return error;
    const auto found = disk_.names_.find(from);
    if (found == disk_.names_.end()) return -ENOENT;
    disk_.names_[to] = found->second;
    disk_.unflushed_names_.push_back({to, found->second});
    disk_.names_.erase(from);
    disk_.unflushed_names_.push_back({from, nullptr});
    return 0;
  }
  int remove(const std::string& name) override {
    const std::lock_guard lock(disk_.mutex_);
    if (const int error = disk_.operate(); error != 0) return error;
    if (disk_.names_.erase(name) == 0) return -ENOENT;
    disk_.unflushed_names_.push_back({name, nullptr});
    return 0;
  }
  int sync_folder() override {
    const std::lock_guard lock(disk_.mutex_);
    if (const int error = disk_.operate(); error != 0) return error;
    if (disk_.flush_error_ != 0) return -disk_.flush_error_;
    disk_.durable_names_ = disk_.names_;
    disk_.unflushed_names_.clear();
    return 0;
  }

 private:
  PowerCutDisk& disk_;
};

void PowerCutDisk::cut_after(std::uint64_t operations) {
  const std::lock_guard lock(mutex_);
  cut_at_ = operations_ + operations;
}

bool PowerCutDisk::is_off() const {
  const std::lock_guard lock(mutex_);
  return operations_ > cut_at_;
}

std::uint64_t PowerCutDisk::operations() const {
  const std::lock_guard lock(mutex_);
  return operations_;
}

void PowerCutDisk::fail_flushes(int error_number) {
  const std::lock_guard lock(mutex_);
  flush_error_ = error_number;
}

int PowerCutDisk::operate() {
  ++operations_;
  return operations_ > cut_at_ ? -EIO : 0;
}

void PowerCutDisk::survive(Content& content, RandomSource& random) {
  content.now = testing::survivors(content.durable, std::move(content.unflushed), random);
  content.durable = content.now;
  content.unflushed.clear();
  content.is_locked = false;
}

void PowerCutDisk::restore_power(RandomSource& random) {
  const std::lock_guard lock(mutex_);
  std::map<std::string, ContentPointer> after = durable_names_;
  const std::size_t kept = random.below(static_cast<std::uint32_t>(unflushed_names_.size() + 1));
  for (std::size_t at = 0; at < kept; ++at) {
    const NameChange& change = unflushed_names_[at];
    if (change.content) after[change.name] = change.content;
    if (!change.content) after.erase(change.name);
  }
  names_.clear();
  for (auto& [name, content] : after) {
    // A copy: holders of the old one belong to the past.
    auto mine = std::make_shared<Content>(*content);
    survive(*mine, random);
    names_[name] = mine;
  }
  durable_names_ = names_;
  unflushed_names_.clear();
  cut_at_ = kNever;
  ++power_;
}

std::unique_ptr<LogStorage> PowerCutDisk::storage() {
  return std::make_unique<PowerCutStorage>(*this);
}

std::map<std::string, std::vector<std::byte>> PowerCutDisk::contents() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::vector<std::byte>> found;
  for (const auto& [name, content] : names_) found[name] = content->now;
  return found;
}

void PowerCutDisk::set_content(const std::string& name, std::vector<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  auto made = std::make_shared<Content>();
  made->now = made->durable = std::move(bytes);
  names_[name] = made;
  durable_names_[name] = made;
}

}  // namespace cairn::durable
