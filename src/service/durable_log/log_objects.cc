// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/log_objects.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::durable {

LoggedObject* LogObjects::find(LogObject number) {
  const auto found = objects_.find(raw(number));
  return found == objects_.end() ? nullptr : &found->second;
}

const LoggedObject* LogObjects::find(LogObject number) const {
  const auto found = objects_.find(raw(number));
  return found == objects_.end() ? nullptr : &found->second;
}

LogObject LogObjects::find(const ObjectKey& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? LogObject::kNone : found->second;
}

LogObject LogObjects::add(const FileIdentity& identity, const FileState& store, LogObject number) {
  if (number == LogObject::kNone) number = static_cast<LogObject>(last_number_ + 1);
  CAIRN_CHECK(!objects_.contains(raw(number)));
  last_number_ = std::max(last_number_, raw(number));
  LoggedObject& made = objects_[raw(number)];
  made.identity = identity;
  made.store = store;
  by_key_[identity.key] = number;
  return number;
}

void LogObjects::drop_idle(LogObject number) {
  const LoggedObject* object = find(number);
  if (object == nullptr || object->is_held || !object->live.empty()) return;
  // The key may belong to a newer number by now.
  if (find(object->identity.key) == number) by_key_.erase(object->identity.key);
  objects_.erase(raw(number));
}

bool LogObjects::add_live(LogObject number, std::uint64_t segment, Lsn lsn) {
  LoggedObject* object = find(number);
  CAIRN_CHECK(object != nullptr);
  live_objects_ += object->live.empty() ? 1 : 0;
  const auto [place, is_first] = object->live.try_emplace(segment, lsn);
  CAIRN_CHECK(is_first || place->second < lsn);
  place->second = lsn;
  return is_first;
}

void LogObjects::retire(LogObject number, Lsn upto, Lsn by, Release release, void* context) {
  LoggedObject* object = find(number);
  CAIRN_CHECK(object != nullptr);
  const bool was_live = !object->live.empty();
  while (!object->live.empty() && object->live.begin()->second <= upto) {
    release(context, object->live.begin()->first, by);
    object->live.erase(object->live.begin());
  }
  if (was_live && object->live.empty()) {
    CAIRN_CHECK(live_objects_ > 0);
    --live_objects_;
  }
}

}  // namespace cairn::durable
