// SPDX-License-Identifier: Apache-2.0
//
// The status of a node for people. docs/reference.md shows it; scripts use `--json`.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/size_text.h"
#include "cli/commands/node_commands.h"
#include "cli/node/json_fields.h"
#include "cli/run/run_report.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

// More clients or files than fit a screen are counted, not listed; --json has them all.
constexpr size_t kListedRowsMax = 20;

using Rows = std::vector<std::vector<std::string>>;

std::string rate_text(const Json& object, const char* key) {
  return format_size(static_cast<uint64_t>(std::max(0.0, number_field(object, key)))) + "/s";
}

std::string share_text(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string head(const Json& status) {
  std::string text = fmt::format(
      "node {}: Cairn {}, service process {}, up {}\n", printable(text_field(status, "node")),
      printable(text_field(status, "version")), unsigned_field(status, "service_pid"),
      format_duration(number_field(status, "uptime_seconds")));
  if (status.contains("keeper_pid") && unsigned_field(status, "keeper_pid") == 0)
    text += "NOTHING KEEPS IT: its keeper was killed, and no process can be had for another one\n";
  if (const uint64_t keepers = unsigned_field(status, "keepers_replaced"); keepers != 0)
    text += fmt::format("its keeper was replaced {}\n",
                        keepers == 1 ? std::string("once") : fmt::format("{} times", keepers));
  const uint64_t restarts = unsigned_field(status, "restarts");
  if (restarts == 0) return text;
  return text + fmt::format("its service was started anew {} (the one before: {})\n",
                            restarts == 1 ? std::string("once") : fmt::format("{} times", restarts),
                            printable(text_field(status, "last_end")));
}

std::string huge_pages_text(const Json& tier) {
  const auto found = tier.find("huge_pages");
  if (found == tier.end()) return "";
  if (found->is_boolean()) return found->get<bool>() ? "huge pages" : "small pages";
  if (found->is_string()) return "huge pages: " + printable(found->get<std::string>());
  return "";
}

// Tiers that did not give back what they had been given.
std::string broken_pages(const Json& status) {
  std::string text;
  for (const Json& tier : member(status, "tiers")) {
    const uint64_t pages = unsigned_field(tier, "broken_pages");
    if (pages == 0) continue;
    text += fmt::format(
        "tier {}: {} times bytes were not what they had been, as their checksums show\n",
        printable(text_field(tier, "name")), pages);
  }
  return text;
}

// Those whose operations have failed.
std::string failing_tiers(const Json& status) {
  std::string text;
  for (const Json& tier : member(status, "tiers")) {
    const uint64_t failures = unsigned_field(tier, "failures");
    const std::string state = printable(text_field(tier, "state"));
    if (failures == 0 && (state.empty() || state == "in service")) continue;
    text += fmt::format("tier {} is {}: {} operations failed, the last one with: {}\n",
                        printable(text_field(tier, "name")), state, failures,
                        printable(text_field(tier, "last_error")));
  }
  return text;
}

std::string tier_table(const Json& status) {
  Rows rows = {{"tier", "capacity", "used", "", "dirty", "place"}};
  for (const Json& tier : member(status, "tiers")) {
    const uint64_t capacity = unsigned_field(tier, "capacity_bytes");
    const uint64_t used = unsigned_field(tier, "used_bytes");
    const std::string path = printable(text_field(tier, "path"));
    rows.push_back({printable(text_field(tier, "name")), format_size(capacity), format_size(used),
                    share_text(used, capacity), format_size(unsigned_field(tier, "dirty_bytes")),
                    text_field(tier, "kind") == "ram" ? huge_pages_text(tier) : path});
  }
  if (rows.size() == 1) return "no tiers: programs work on the backing store directly\n";
  return format_table(rows, "lrrrrl") + failing_tiers(status) + broken_pages(status);
}

std::string activity(const Json& status) {
  const Json& rates = member(status, "rates");
  const Json& backing = member(status, "backing");
  std::string text = fmt::format("reading {}, writing {}, flushing {}\n",
                                 rate_text(rates, "read_bytes_per_second"),
                                 rate_text(rates, "write_bytes_per_second"),
                                 rate_text(backing, "flush_rate_bytes_per_second"));
  const Json& counters = member(status, "counters");
  const uint64_t read = unsigned_field(counters, "read_bytes");
  text += fmt::format("read {}: {} from ram, {} from file tiers, {} from the backing store\n",
                      format_size(read),
                      share_text(unsigned_field(counters, "read_hit_bytes_ram"), read),
                      share_text(unsigned_field(counters, "read_hit_bytes_file"), read),
                      share_text(unsigned_field(counters, "read_miss_bytes"), read));
  text += fmt::format("written {}, {} of it straight through; flushed {}\n",
                      format_size(unsigned_field(counters, "write_bytes")),
                      format_size(unsigned_field(counters, "write_through_bytes")),
                      format_size(unsigned_field(counters, "flushed_bytes")));
  const uint64_t dirty = unsigned_field(backing, "dirty_bytes");
  text += dirty == 0 ? std::string("everything is stored\n")
                     : fmt::format("not stored yet: {} in {} files\n", format_size(dirty),
                                   unsigned_field(backing, "dirty_files"));
  return text;
}

// What a finished fsync survives, and how the log of the durable tier does.
std::string durability(const Json& status) {
  const Json& found = member(status, "durability");
  const auto has_log = found.find("has_log");
  if (has_log == found.end() || !has_log->is_boolean() || !has_log->get<bool>()) return "";
  const uint64_t used = unsigned_field(found, "log_used_bytes");
  const uint64_t capacity = unsigned_field(found, "log_capacity_bytes");
  std::string text = fmt::format(
      "fsync: level {}; {} by the log, {} by the store\n"
      "durable log in {}: {} of {} ({}), {} files, {} commits by {} flushes of its device\n",
      printable(text_field(found, "level")), unsigned_field(found, "logged"),
      unsigned_field(found, "stored"), printable(text_field(found, "directory")), format_size(used),
      format_size(capacity), share_text(used, capacity), unsigned_field(found, "files_in_log"),
      unsigned_field(found, "commits"), unsigned_field(found, "device_flushes"));
  const uint64_t full = unsigned_field(found, "stored_log_full");
  if (full != 0)
    text += fmt::format("the log was full {} times: give it more (durability.log_size)\n", full);
  if (const std::string trouble = text_field(found, "trouble"); !trouble.empty()) {
    text +=
        fmt::format("the log is out of order, fsync is of level store: {}\n", printable(trouble));
  }
  const Json& checkpoint = member(found, "checkpoint");
  if (!checkpoint.is_object() || checkpoint.empty()) return text;
  text += fmt::format(
      "checkpoints: every {} s, in at most {} % of the log device's time; {} so far, {} logged\n",
      unsigned_field(checkpoint, "interval_seconds"), unsigned_field(checkpoint, "share_percent"),
      unsigned_field(checkpoint, "count"), format_size(unsigned_field(checkpoint, "bytes")));
  if (unsigned_field(checkpoint, "count") == 0) return text;
  return text + fmt::format("the last checkpoint began {} ago and took {}\n",
                            format_duration(number_field(checkpoint, "age_seconds")),
                            format_duration(number_field(checkpoint, "took_seconds")));
}

// A titled table of the first rows, and how many were left out.
std::string section(const std::string& title, Rows rows, const char* alignment, uint64_t total) {
  if (rows.size() <= 1) return "";
  const size_t listed = std::min(rows.size() - 1, kListedRowsMax);
  rows.resize(listed + 1);
  std::string text = fmt::format("\n{} ({})\n{}", title, total, format_table(rows, alignment));
  if (total > listed) text += fmt::format("and {} more, see --json\n", total - listed);
  return text;
}

std::string move_section(const Json& status) {
  Rows rows = {{"from", "to", "why", "blocks", "bytes"}};
  const Json& moves = member(status, "moves");
  for (const Json& move : moves) {
    rows.push_back({printable(text_field(move, "from")), printable(text_field(move, "to")),
                    printable(text_field(move, "reason")),
                    std::to_string(unsigned_field(move, "blocks")),
                    format_size(unsigned_field(move, "bytes"))});
  }
  return section("moves", std::move(rows), "lllrr", moves.size());
}

// What the node fetched ahead, by predictor, and how much of it programs used.
std::string fetch_section(const Json& status) {
  Rows rows = {{"predictor", "fetched", "used", "", "late", "unused", "below", "evicted unused"}};
  const Json& fetches = member(status, "fetches");
  for (const Json& fetch : fetches) {
    const uint64_t fetched = unsigned_field(fetch, "fetched_bytes");
    const uint64_t used = unsigned_field(fetch, "used_bytes");
    rows.push_back({printable(text_field(fetch, "predictor")), format_size(fetched),
                    format_size(used), share_text(used, fetched),
                    format_size(unsigned_field(fetch, "late_bytes")),
                    format_size(unsigned_field(fetch, "unused_bytes")),
                    format_size(unsigned_field(fetch, "below_bytes")),
                    format_size(unsigned_field(fetch, "evicted_unused_bytes"))});
  }
  std::string text =
      section("fetched ahead of its use", std::move(rows), "lrrrrrrr", fetches.size());
  const uint64_t known = unsigned_field(member(status, "remembered"), "files");
  if (known != 0) text += fmt::format("known from earlier nodes: the orders of {} files\n", known);
  const uint64_t unpacked = unsigned_field(status, "unpacked_ahead");
  if (unpacked != 0)
    text += fmt::format("unpacked before they were read: {} chunks of arrays\n", unpacked);
  return text;
}

// The warnings of the node about its configuration.
std::string warning_section(const Json& status) {
  std::string text;
  for (const Json& warning : member(status, "warnings"))
    text += fmt::format("warning: {}\n", printable(warning.get<std::string>()));
  return text.empty() ? text : "\n" + text;
}

std::string replacement_section(const Json& status) {
  Rows rows = {{"tier", "expert", "follows", "references", "misses", "known ahead"}};
  const Json& tiers = member(status, "replacement");
  for (const Json& tier : tiers) {
    const uint64_t references = unsigned_field(tier, "references");
    rows.push_back({printable(text_field(tier, "tier")), printable(text_field(tier, "expert")),
                    printable(text_field(tier, "follows")), std::to_string(references),
                    share_text(unsigned_field(tier, "misses"), references),
                    std::to_string(unsigned_field(tier, "known_ahead"))});
  }
  return section("what leaves a tier", std::move(rows), "lllrrr", tiers.size());
}

std::string run_text(const Json& client) {
  const auto run = client.find("run");
  if (run == client.end()) return "";
  return run->is_string() ? printable(run->get<std::string>()) : run->dump();
}

// The parts of the tiers that runs have.
std::string run_section(const Json& status) {
  Rows rows = {{"run", "weight", "tier", "used", "share", "reserved", "program"}};
  const Json& runs = member(status, "runs");
  for (const Json& run : runs) {
    const Json& command = member(run, "command_line");
    const std::string program = command.empty() || !command.front().is_string()
                                    ? ""
                                    : printable(command.front().get<std::string>());
    for (const Json& tier : member(run, "tiers")) {
      rows.push_back({run_text(run), std::to_string(unsigned_field(run, "weight")),
                      printable(text_field(tier, "name")),
                      format_size(unsigned_field(tier, "used_bytes")),
                      format_size(unsigned_field(tier, "share_bytes")),
                      format_size(unsigned_field(tier, "reserved_bytes")), program});
    }
  }
  const size_t count = rows.size() - 1;
  return section("runs and what they have of the tiers", std::move(rows), "rrlrrrl", count);
}

// What rules reserve for their files.
std::string reservation_section(const Json& status) {
  const Json& reservations = member(status, "reservations");
  if (reservations.empty()) return "";
  Rows rows = {{"files", "run", "tier", "used", "reserved"}};
  for (const Json& reservation : reservations) {
    rows.push_back({printable(text_field(reservation, "pattern")), run_text(reservation),
                    printable(text_field(reservation, "tier")),
                    format_size(unsigned_field(reservation, "used_bytes")),
                    format_size(unsigned_field(reservation, "reserved_bytes"))});
  }
  return section("room reserved for files", std::move(rows), "lrlrr", reservations.size());
}

std::string client_section(const Json& status) {
  Rows rows = {{"pid", "run", "command"}};
  const Json& clients = member(status, "clients");
  for (const Json& client : clients) {
    rows.push_back({std::to_string(unsigned_field(client, "pid")), run_text(client),
                    printable(text_field(client, "command"))});
  }
  return section("clients", std::move(rows), "rrl", clients.size());
}

std::string unstored_section(const Json& status) {
  Rows rows = {{"left", "for", "file", "error"}};
  const Json& files = member(status, "unstored");
  for (const Json& file : files) {
    rows.push_back({format_size(unsigned_field(file, "dirty_bytes")),
                    format_duration(number_field(file, "since_seconds")),
                    printable(text_field(file, "path")),
                    text_field(file, "error").empty() ? "" : unstored_reason(file)});
  }
  const uint64_t total = std::max<uint64_t>(unsigned_field(status, "unstored_total"), files.size());
  return section("files not yet stored", std::move(rows), "rrll", total);
}

std::string error_section(const Json& status) {
  Rows rows = {{"times", "since", "file", "error"}};
  const Json& errors = member(status, "errors");
  for (const Json& error : errors) {
    rows.push_back({std::to_string(unsigned_field(error, "count")),
                    format_duration(number_field(error, "since_seconds")),
                    printable(text_field(error, "path")), printable(text_field(error, "message"))});
  }
  return section("errors of the backing store", std::move(rows), "rrll", errors.size());
}

std::string foreign_section(const Json& status) {
  Rows rows = {{"pid", "command", "why"}};
  const Json& programs = member(status, "foreign");
  for (const Json& program : programs) {
    rows.push_back({std::to_string(unsigned_field(program, "pid")),
                    printable(text_field(program, "command")),
                    printable(text_field(program, "reason"))});
  }
  return section("programs that cannot be buffered", std::move(rows), "rll", programs.size());
}

}  // namespace

std::string status_text(const Json& status) {
  return head(status) + "\n" + tier_table(status) + "\n" + activity(status) + durability(status) +
         run_section(status) + reservation_section(status) + move_section(status) +
         fetch_section(status) + replacement_section(status) + warning_section(status) +
         client_section(status) + unstored_section(status) + error_section(status) +
         foreign_section(status);
}

}  // namespace cairn::cli
