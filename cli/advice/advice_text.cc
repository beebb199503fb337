// SPDX-License-Identifier: Apache-2.0
#include "cli/advice/advice_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/size_text.h"
#include "cli/advice/advice_sentences.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kRowsMax = 8;

std::uint64_t whole(double bytes) { return static_cast<std::uint64_t>(std::max(0.0, bytes)); }

bool is_advised_against(const AdviceTold& told) {
  return told.advice.verdict == advice::Verdict::kDoNotUse;
}

std::vector<std::string> row_of(const advice::Candidate& candidate, bool is_chosen) {
  const advice::Plan& plan = candidate.plan;
  return {fmt::format("{}{}", is_chosen ? "* " : "  ", plan.name),
          format_size(whole(plan.ram_bytes)),
          plan.tiers.empty() ? "-" : format_size(whole(plan.tier_bytes())),
          plan.expert,
          format_duration(candidate.forecast.seconds()),
          fmt::format("{} to {}", format_duration(candidate.forecast.interval.low),
                      format_duration(candidate.forecast.interval.high)),
          fmt::format("{:.0f} %", 100 * candidate.gain.share)};
}

// The advised one, the one in use, and of the others as many as have room.
std::string table_text(const AdviceTold& told) {
  const advice::Advice& advice = told.advice;
  std::vector<std::vector<std::string>> rows = {
      {"  configuration", "memory", "tiers", "expert", "I/O time", "9 cases in 10", "gain"}};
  rows.push_back({"  without Cairn", "-", "-", "-", format_duration(advice.without.seconds()),
                  fmt::format("{} to {}", format_duration(advice.without.interval.low),
                              format_duration(advice.without.interval.high)),
                  "-"});
  for (std::size_t index = 0; index < advice.candidates.size(); ++index) {
    const advice::Candidate& candidate = advice.candidates[index];
    const bool is_chosen = index == advice.chosen;
    const bool is_given =
        index + told.question.wishes.plans.size() + (told.question.wishes.what_if ? 1 : 0) >=
        advice.candidates.size();
    const bool is_usual = candidate.plan.expert == advice::kDefaultExpert;
    if (is_chosen || is_given || (is_usual && rows.size() < kRowsMax))
      rows.push_back(row_of(candidate, is_chosen && !is_advised_against(told)));
  }
  return format_table(rows, "lrrlrrr");
}

OrderedJson interval_json(const advice::Interval& interval) {
  return {{"low", interval.low}, {"high", interval.high}};
}

OrderedJson forecast_json(const advice::Forecast& forecast) {
  const advice::Parts& parts = forecast.parts;
  return {{"io_seconds", forecast.seconds()},
          {"interval", interval_json(forecast.interval)},
          {"parts",
           {{"store_reads", parts.store_reads},
            {"tier_reads", parts.tier_reads},
            {"copies", parts.copies},
            {"store_writes", parts.store_writes},
            {"fsyncs", parts.fsyncs}}},
          {"miss_ratio", forecast.miss_ratio},
          {"drain_seconds", forecast.drain_seconds}};
}

OrderedJson plan_json(const advice::Plan& plan) {
  OrderedJson tiers = OrderedJson::array();
  for (const advice::FileTierPlan& tier : plan.tiers)
    tiers.push_back({{"name", tier.name},
                     {"directory", tier.directory},
                     {"bytes", whole(tier.bytes)},
                     {"durable", tier.is_durable},
                     {"figures", tier.speed.source}});
  return {{"name", plan.name},
          {"ram_bytes", whole(plan.ram_bytes)},
          {"tiers", std::move(tiers)},
          {"expert", plan.expert},
          {"policy", plan.policy},
          {"trigger", plan.trigger},
          {"mode", plan.mode},
          {"durability", plan.durability == advice::DurableLevel::kNode ? "node" : "store"},
          {"prefetch_percent", plan.prefetch_percent},
          {"flush_streams", plan.flush_streams}};
}

OrderedJson candidate_json(const advice::Candidate& candidate) {
  OrderedJson object = plan_json(candidate.plan);
  object["forecast"] = forecast_json(candidate.forecast);
  object["gain"] = {{"share", candidate.gain.share},
                    {"interval", interval_json(candidate.gain.interval)}};
  return object;
}

OrderedJson workload_json(const AdviceTold& told) {
  const advice::AccessSummary& accesses = told.work.accesses;
  const auto counts = [](const advice::UseCounts& uses) {
    return OrderedJson{{"requests", whole(uses.requests)},
                       {"bytes", whole(uses.request_bytes)},
                       {"block_uses", whole(uses.uses())},
                       {"sequential_share", uses.sequential_share()},
                       {"foreseen_share", uses.foreseen_share()}};
  };
  return {{"reads", counts(accesses.reads)},
          {"writes", counts(accesses.writes)},
          {"requests_by_size", accesses.requests_by_size},
          {"files", accesses.files},
          {"seconds", accesses.seconds},
          {"compute_seconds", told.advice.compute_seconds},
          {"concurrency", accesses.concurrency},
          {"fsyncs", accesses.fsyncs ? OrderedJson(*accesses.fsyncs) : OrderedJson(nullptr)},
          {"first_read_ratio", told.work.reuse.reads.compulsory_ratio()}};
}

OrderedJson sizes_json(const advice::Sizes& sizes, bool has_target) {
  const auto bytes_or_null = [](const std::optional<double>& bytes) {
    return bytes ? OrderedJson(whole(*bytes)) : OrderedJson(nullptr);
  };
  OrderedJson object = {{"knee_bytes", bytes_or_null(sizes.knee_bytes)},
                        {"hot_bytes", whole(sizes.hot_bytes)},
                        {"working_set_bytes", whole(sizes.working_set_bytes)}};
  if (has_target) object["target_bytes"] = bytes_or_null(sizes.target_bytes);
  return object;
}

OrderedJson trained_json(const TrainedUses& uses) {
  OrderedJson list = OrderedJson::array();
  for (const auto& use : uses) {
    const bool is_physical = use->model.kind == DeviceModelKind::kPhysical;
    list.push_back({{"place", use->place},
                    {"access", use->is_read ? "read" : "write"},
                    {"file", use->file},
                    {"model", is_physical ? "physical" : "regression"},
                    {"r_squared", use->model.error().r_squared},
                    {"error_factor", use->model.error().factor_of_nine_tenths},
                    {"answered", use->answered},
                    {"outside", use->outside}});
  }
  return list;
}

OrderedJson improvements_json(const advice::Advice& advice) {
  OrderedJson list = OrderedJson::array();
  for (const advice::Improved& improved : advice.improvements)
    list.push_back({{"what", name_of(improved.what)},
                    {"saved_seconds", improved.seconds},
                    {"bytes", whole(improved.bytes)}});
  return list;
}

OrderedJson left_out_json(const AdviceTold& told) {
  OrderedJson list = OrderedJson::array();
  for (const TierLeftOut& each : tiers_left_out(told))
    list.push_back({{"name", each.tier->name},
                    {"directory", each.tier->directory},
                    {"bytes", whole(each.tier->bytes)},
                    {"durable", each.tier->is_durable},
                    {"reason", each.reason},
                    {"sentence", each.sentence}});
  return list;
}

OrderedJson node_json(const std::optional<LookedAtNode>& node) {
  if (!node) return nullptr;
  return {{"name", node->name},
          {"seconds", node->seconds},
          {"events", node->accesses},
          {"lost", node->lost},
          {"uptime_seconds", node->uptime_seconds},
          {"read_bytes", whole(node->read_bytes)},
          {"miss_bytes", whole(node->miss_bytes)},
          {"written_bytes", whole(node->write_bytes)}};
}

std::string size_word(double bytes) { return format_size_exact(whole(bytes)); }

// In a YAML text between double quotes.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// At least 1, which says that something was foretold.
uint64_t milliseconds(double seconds) {
  constexpr double kYearSeconds = 366.0 * 86'400;
  return std::max<uint64_t>(1, whole(std::min(seconds, kYearSeconds) * 1000));
}

std::string foretold_config(const advice::Forecast& forecast) {
  return fmt::format("advice:\n  io_ms: {}\n  io_min_ms: {}\n  io_max_ms: {}\n",
                     milliseconds(forecast.seconds()), milliseconds(forecast.interval.low),
                     milliseconds(forecast.interval.high));
}

std::string tiers_config(const std::vector<advice::FileTierPlan>& tiers) {
  if (tiers.empty()) return "tiers: []\n";
  std::string text = "tiers:\n";
  for (const advice::FileTierPlan& tier : tiers) {
    text += fmt::format("  - {{name: {}, directory: {}, capacity: {}{}}}\n", tier.name,
                        tier.directory.empty() ? "DIRECTORY" : quoted(tier.directory),
                        size_word(tier.bytes), tier.is_durable ? ", durable: true" : "");
  }
  return text;
}

}  // namespace

std::string config_text(const AdviceTold& told) {
  const advice::Plan& plan = told.advice.advised().plan;
  if (is_advised_against(told)) {
    return "# Advised by `cairn advise`: " + verdict_sentence(told) +
           "\nbuffer:\n  mode: bypass\n" + foretold_config(told.advice.without) +
           fmt::format("  compute_ms: {}\n", milliseconds(told.advice.compute_seconds));
  }
  std::string text = "# Advised by `cairn advise`: " + verdict_sentence(told) + "\n";
  text += fmt::format("ram:\n  capacity: {}\n", size_word(plan.ram_bytes));
  text += tiers_config(plan.tiers);
  text += fmt::format("buffer:\n  mode: {}\n", plan.mode);
  text +=
      fmt::format("flush:\n  trigger: {}\n  streams: {:.0f}\n", plan.trigger, plan.flush_streams);
  text += fmt::format("placement:\n  policy: {}\n", quoted(plan.policy));
  text += fmt::format("replacement:\n  expert: {}\n", plan.expert);
  text += fmt::format("prefetch:\n  budget: {:.0f}\n", plan.prefetch_percent);
  return text + foretold_config(told.advice.advised().forecast);
}

std::string advice_text(const AdviceTold& told) {
  std::string text = verdict_sentence(told) + "\n\n" + table_text(told) + "\n";
  for (const std::string& line : reason_sentences(told)) text += "- " + line + "\n";
  text += "\nAssumed:\n";
  for (const std::string& line : assumption_sentences(told)) text += "- " + line + "\n";
  return text + "\n" + config_text(told);
}

std::string advice_json(const AdviceTold& told) {
  const advice::Advice& advice = told.advice;
  OrderedJson candidates = OrderedJson::array();
  for (const advice::Candidate& candidate : advice.candidates)
    candidates.push_back(candidate_json(candidate));
  OrderedJson object = {
      {"verdict", name_of(advice.verdict)},
      {"refusal", name_of(advice.refusal)},
      {"sentence", verdict_sentence(told)},
      {"workload", workload_json(told)},
      {"sizes", sizes_json(advice.sizes, told.question.wishes.target_share.has_value())},
      {"without", forecast_json(advice.without)},
      {"candidates", std::move(candidates)},
      {"chosen", advice.chosen},
      {"left_out", left_out_json(told)},
      {"node", node_json(told.node)},
      {"limit", name_of(advice.limit)},
      {"improvements", improvements_json(advice)},
      {"fsync_seconds",
       {{"store", advice.store_fsync_seconds}, {"node", advice.node_fsync_seconds}}},
      {"store_figures", told.question.machine.store.source},
      {"trained", trained_json(told.trained)},
      {"page_cache_bytes", whole(told.question.machine.page_cache_bytes)},
      {"assumptions", assumption_sentences(told)},
      {"config", config_text(told)}};
  return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

void write_advice_config(const AdviceTold& told, const std::string& path, bool force) {
  const std::vector<advice::FileTierPlan>& tiers = told.advice.advised().plan.tiers;
  const bool lacks_place = std::ranges::any_of(
      tiers, [](const advice::FileTierPlan& tier) { return tier.directory.empty(); });
  if (lacks_place && !is_advised_against(told))
    throw Failure(
        fmt::format("--write {}: the tier of --what-if has no directory", printable(path)),
        "name one by --tier DIR:SIZE instead");
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL);
  const int file = ::open(path.c_str(), flags, 0666);
  if (file < 0 && errno == EEXIST)
    throw Failure(fmt::format("--write {}: the file is there already", printable(path)),
                  "name another one, or replace it by --force");
  if (file < 0)
    throw Failure(fmt::format("--write {}: {}", printable(path), std::strerror(errno)),
                  "name a file that you may write");
  const bool written = write_fully(file, config_text(told));
  const int error = errno;
  if (::close(file) != 0 || !written)
    throw Failure(fmt::format("--write {}: {}", printable(path), std::strerror(error)),
                  "write it where there is room");
}

}  // namespace cairn::cli
