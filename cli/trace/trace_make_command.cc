// SPDX-License-Identifier: Apache-2.0
//
// `cairn trace make`: a trace of traffic as a model has it, to size and compare caches without a
// program.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <optional>

#include "base/random_source.h"
#include "base/size_text.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/trace/trace_command.h"
#include "cli/trace/trace_input.h"
#include "policy/traffic/independent_traffic.h"
#include "policy/traffic/poisson_traffic.h"
#include "service/trace/trace_writer.h"

namespace cairn::cli {
namespace {

// A unit of a model's time, in which one page comes (Poisson) or is used (IRM).
constexpr double kUnitNs = 1e6;
constexpr std::uint64_t kDefaultPageBytes = 512 << 10;

struct MakeWords {
  std::string trace;
  std::string page;
  std::uint64_t page_bytes = kDefaultPageBytes;
  std::uint64_t references = 100'000;
  double writes = 0;  // percent
  std::uint64_t seed = 1;
};

using NextUse = std::function<std::optional<PageUse>()>;

void add_make_options(CLI::App& app, MakeWords& words) {
  app.add_option("path", words.trace, "The trace to write, which must not be there")
      ->type_name("TRACE")
      ->required();
  app.add_option("--references", words.references, "How many reads and writes (default: 100000)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}));
  add_text(app, "--page", words.page, "Bytes of one reference (default: 512K)", "SIZE");
  app.add_option("--writes", words.writes, "How many of them are writes (default: 0)")
      ->type_name("PERCENT")
      ->check(number_between(0.0, 100.0));
  app.add_option("--seed", words.seed, "Another one makes other traffic (default: 1)")
      ->type_name("N");
}

// What the options of all models have to say besides.
void check_words(MakeWords& words) {
  constexpr std::uint64_t kPageBytesMax = std::uint64_t{1} << 30;
  if (!words.page.empty()) words.page_bytes = size_argument("--page", words.page);
  if (words.page_bytes > kPageBytesMax)
    throw Failure("--page: more than 1G", "give what a program reads at a time, such as 64K or 4M");
  if (std::isnan(words.writes)) throw Failure("--writes: not a number", "give 0 to 100");
}

// A number between bounds; CLI11's Range takes what is not a number.
void check_number(const char* option, double number, double least, double most) {
  if (number >= least && number <= most) return;
  throw Failure(fmt::format("{}: {:g} is not between {:g} and {:g}", option, number, least, most),
                "`cairn trace make --help` says what it means");
}

Status write_events(TraceWriter& writer, const MakeWords& words, const NextUse& next) {
  // Whether a use writes must not change which page the next one is of.
  RandomSource writes(~words.seed);
  TraceEvent event;
  if (const auto file = writer.file("traffic"); file) event.file = file.value();
  if (const auto process = writer.process("traffic"); process) event.process = process.value();
  event.kind = TraceKind::kOpen;
  Status status = writer.append(event);
  event.length = static_cast<std::uint32_t>(words.page_bytes);
  for (std::uint64_t left = words.references; left > 0 && status; --left) {
    const auto use = next();
    if (!use) break;
    event.time_ns = static_cast<std::uint64_t>(use->time * kUnitNs);
    event.offset = use->page * words.page_bytes;
    event.kind = writes.fraction() * 100 < words.writes ? TraceKind::kWrite : TraceKind::kReadMiss;
    status = writer.append(event);
  }
  event.kind = TraceKind::kClose;
  event.offset = 0;
  event.length = 0;
  if (status) status = writer.append(event);
  return status ? writer.finish() : status;
}

int write_trace(const MakeWords& words, const NextUse& next) {
  auto writer = TraceWriter::create(words.trace, {.is_new = true});
  if (!writer)
    throw Failure(writer.status().message(), "write it under a new name, where there is room");
  TraceWriter& trace = *writer.value();
  if (const Status status = write_events(trace, words, next); !status) {
    ::unlink(words.trace.c_str());
    throw Failure(status.message(), "write it where there is room");
  }
  const std::uint64_t references = trace.events() - 2;
  print(fmt::format("{}: {} references, {}\n", printable(words.trace), references,
                    format_size(trace.file_bytes())));
  if (references < words.references)
    say(
        fmt::format("all pages have expired after {} references; --renew has others take their "
                    "places",
                    references));
  return kExitOk;
}

int make_poisson(const Arguments& arguments) {
  // So many uses to come are kept in memory, of 16 bytes each.
  constexpr double kUsesMax = 1e8;
  CLI::App app("Writes a trace of traffic whose pages are used less and less as they age.",
               "cairn trace make poisson");
  MakeWords words;
  PoissonTrafficShape shape;
  add_make_options(app, words);
  app.add_option("--repeats", shape.repeats, "Mean uses of a page after its first (default: 8)")
      ->type_name("N");
  app.add_option("--lifetime", shape.lifetime,
                 "Mean age of a page at such a use, in pages that have come since (default: 20)")
      ->type_name("PAGES");
  app.footer("Example:\n  cairn trace make poisson --lifetime 40 poisson.trace");
  parse(app, arguments);
  check_words(words);
  check_number("--repeats", shape.repeats, 0, 1e6);
  check_number("--lifetime", shape.lifetime, 1e-6, 1e9);
  check_number("--repeats times --lifetime", shape.repeats * shape.lifetime, 0, kUsesMax);
  PoissonTraffic traffic(shape, words.seed);
  return write_trace(words, [&]() -> std::optional<PageUse> { return traffic.next(); });
}

int make_independent(const Arguments& arguments) {
  CLI::App app("Writes a trace of traffic in which some pages are more popular than others.",
               "cairn trace make irm");
  MakeWords words;
  IndependentTrafficShape shape;
  shape.renews = false;
  std::uint64_t uses = 0;
  add_make_options(app, words);
  app.add_option("--pages", shape.pages, "Pages that are there at a time (default: 1000)")
      ->type_name("N")
      ->check(CLI::Range(std::uint32_t{1}, std::uint32_t{10'000'000}));
  app.add_option("--alpha", shape.alpha, "Zipf's exponent: 0 for all alike (default: 1)")
      ->type_name("A");
  app.add_option("--lifetime", uses,
                 "References in which each page has its share and expires (default: never)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 50));
  app.add_flag("--renew", shape.renews, "Another page takes the place of one that has expired");
  app.footer("Example:\n  cairn trace make irm --alpha 0.8 --lifetime 20000 --renew irm.trace");
  parse(app, arguments);
  check_words(words);
  check_number("--alpha", shape.alpha, 0, 10);
  if (shape.renews && uses == 0)
    throw Failure("--renew: no page expires", "give a --lifetime as well");
  constexpr std::uint64_t kNever = std::uint64_t{1} << 62;
  shape.uses = uses == 0 ? kNever : uses;
  IndependentTraffic traffic(shape, words.seed);
  return write_trace(words, [&] { return traffic.next(); });
}

}  // namespace

int trace_make(const Arguments& arguments) {
  const auto [model, rest] = split_verb(arguments);
  if (model == "poisson") return make_poisson(rest);
  if (model == "irm") return make_independent(rest);
  if (model == "--help" || model == "-h") {
    print(
        "Writes a trace as a model of traffic has it, the same for the same seed.\n\n"
        "  cairn trace make poisson TRACE   pages come one after the other, and are used less as "
        "they age\n"
        "  cairn trace make irm TRACE       popular pages and others, each use by itself "
        "(independent reference model)\n\n"
        "Example:\n  cairn trace make irm --alpha 0.8 irm.trace && cairn trace misses irm.trace\n");
    return kExitOk;
  }
  throw Failure(model.empty() ? "trace make: poisson or irm?"
                              : fmt::format("trace make: no model is called \"{}\"", model),
                "`cairn trace make --help` says what each is");
}

}  // namespace cairn::cli
