// SPDX-License-Identifier: Apache-2.0
#include "service/control/run_sessions.h"

#include <utility>

#include "base/check.h"
#include "service/control/kept_json.h"

namespace cairn::node {

// Requires: the mutex.
void RunSessions::note(Entry* entry, std::uint64_t session, const Answer& answer) {
  if (answer.request != 0) entry->answers.push_back(answer);
  if (entry->answers.size() > kAnswersMax) entry->answers.pop_front();
  Json kept = {{"session", session}, {"answers", Json::array()}};
  for (const Answer& each : entry->answers)
    kept["answers"].push_back({{"request", each.request}, {"reply", each.reply}});
  if (entry->begun) {
    kept["run"] = run_to_json(entry->begun->run);
    kept["weight"] = entry->begun->weight;
  }
  entry->text = packed(kept);
}

void RunSessions::begin(std::uint64_t session, const Begun& begun, const Answer& answer) {
  const std::lock_guard lock(mutex_);
  CAIRN_CHECK(session != 0);
  Entry& entry = entries_[session];
  entry.begun = begun;
  note(&entry, session, answer);
}

void RunSessions::end(std::uint64_t session, const std::string& run, const Answer& answer) {
  CAIRN_CHECK(session != 0);
  const std::lock_guard lock(mutex_);
  for (auto& [number, entry] : entries_) {
    if (!entry.begun || entry.begun->run.id != run) continue;
    entry.begun.reset();
    if (number != session) note(&entry, number, Answer{});
  }
  note(&entries_[session], session, answer);
}

std::string RunSessions::close(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(session);
  if (found == entries_.end()) return {};
  const std::string run = found->second.begun ? found->second.begun->run.id : std::string();
  entries_.erase(found);
  return run;
}

std::optional<Json> RunSessions::answer_to(std::uint64_t session, std::uint64_t request) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(session);
  if (found == entries_.end() || request == 0) return std::nullopt;
  for (const Answer& answer : found->second.answers) {
    if (answer.request == request) return answer.reply;
  }
  return std::nullopt;
}

std::vector<std::uint64_t> RunSessions::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> sessions;
  for (const auto& [session, entry] : entries_) sessions.push_back(session);
  return sessions;
}

std::vector<std::string> RunSessions::snapshot() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const auto& [session, entry] : entries_) texts.push_back(entry.text);
  return texts;
}

Result<std::optional<RunSessions::Begun>> RunSessions::add(const std::string& text) {
  const Json kept = unpacked(text);
  if (!kept.is_object()) return Status(StatusCode::kInvalid, "a connection is no object");
  const std::uint64_t session = number_at(kept, "session");
  Entry entry;
  entry.text = text;
  for (const Json& answer : kept.at("answers"))
    entry.answers.push_back({number_at(answer, "request"), answer.at("reply")});
  if (entry.answers.size() > kAnswersMax)
    return Status(StatusCode::kInvalid, "a connection has too many answers");
  if (const auto run = kept.find("run"); run != kept.end())
    entry.begun = Begun{run_from_json(*run), small_number_at(kept, "weight")};
  if (entry.begun && entry.begun->run.number() == 0)
    return Status(StatusCode::kInvalid, "a run is named \"" + entry.begun->run.id + "\"");
  const std::optional<Begun> begun = entry.begun;
  const std::lock_guard lock(mutex_);
  if (!entries_.emplace(session, std::move(entry)).second) {
    return Status(StatusCode::kInvalid,
                  "connection " + std::to_string(session) + " is there twice");
  }
  return begun;
}

}  // namespace cairn::node
