// SPDX-License-Identifier: Apache-2.0
#include "base/option_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/size_text.h"

namespace cairn {
namespace {

constexpr uint64_t kNoMaximum = std::numeric_limits<int64_t>::max();

constexpr OptionDescription kOptionTable[] = {
    {.id = OptionId::kNodeName,
     .name = "node.name",
     .environment = "CAIRN_NODE_NAME",
     .flag = "--name",
     .type = OptionType::kName,
     .default_text = "default",
     .value_min = 1,
     .value_max = 48,
     .choices = "",
     .unit = "letters, digits, `_`, `-`, `.`; at most 48",
     .description = "Name of a node started by `cairn up`; other commands refer to it by `--node`.",
     .advice =
         "Give each workflow of a user on a machine its own. Names that begin with `run-` are "
         "taken by private nodes of `cairn run`.",
     .hot_changeable = false},
    {.id = OptionId::kRamCapacity,
     .name = "ram.capacity",
     .environment = "CAIRN_RAM_CAPACITY",
     .flag = "--ram",
     .type = OptionType::kSize,
     .default_text = "auto",
     .value_min = 0,
     .value_max = kNoMaximum,
     .choices = "",
     .unit = "bytes, with K, M, G, T (binary); `auto`; 0 for no RAM tier",
     .description =
         "Bytes of memory that hold buffered data. `auto` is a quarter of MemAvailable, and "
         "never more than a quarter of what the memory cgroup still allows.",
     .advice = "The working set of the program, if the node can spare it; leave the program's own "
               "memory free, because tier memory is not reclaimed under pressure.",
     .hot_changeable = false},
    {.id = OptionId::kRamHugePages,
     .name = "ram.huge_pages",
     .environment = "CAIRN_RAM_HUGE_PAGES",
     .flag = "--huge-pages",
     .type = OptionType::kChoice,
     .default_text = "auto",
     .value_min = 0,
     .value_max = 0,
     .choices = "auto|never|hugetlb",
     .unit = "`auto`, `never` or `hugetlb`",
     .description =
         "Which pages the RAM tier asks for. `auto` uses transparent huge pages where the "
         "kernel grants them to shared memory, `hugetlb` uses reserved ones.",
     .advice = "Huge pages make every hit 10 to 25 % faster. `cairn doctor` says what the "
               "administrator would set.",
     .hot_changeable = false},
    {.id = OptionId::kTiers,
     .name = "tiers",
     .environment = "CAIRN_TIERS",
     .flag = "--tier",
     .type = OptionType::kTierList,
     .default_text = "auto",
     .value_min = 0,
     .value_max = 8,
     .choices = "",
     .unit = "list of `{name, directory, capacity}`; `DIR:SIZE` on the command line",
     .description =
         "File tiers below RAM, fastest first. `auto` takes a local solid-state disk with "
         "room (at least 20 % and 16 GiB free) if one is found; an empty list means none.",
     .advice =
         "Each tier is one preallocated file in its directory. Never on tmpfs, and not on the "
         "disk that is being buffered.",
     .hot_changeable = false},
    {.id = OptionId::kFlushDelay,
     .name = "flush.delay_ms",
     .environment = "CAIRN_FLUSH_DELAY_MS",
     .flag = "",
     .type = OptionType::kMilliseconds,
     .default_text = "500",
     .value_min = 0,
     .value_max = 3'600'000,
     .choices = "",
     .unit = "milliseconds; also `2s`, `1min`",
     .description = "How long written data may stay dirty before the background flush takes it.",
     .advice = "Longer gathers larger writes and absorbs overwrites; shorter leaves less to drain.",
     .hot_changeable = false},
    {.id = OptionId::kFlushStreams,
     .name = "flush.streams",
     .environment = "CAIRN_FLUSH_STREAMS",
     .flag = "",
     .type = OptionType::kCount,
     .default_text = "2",
     .value_min = 1,
     .value_max = 64,
     .choices = "",
     .unit = "a number",
     .description = "Parallel writers to the backing store.",
     .advice = "1 for a single spinning disk, 4 to 16 for a parallel file system.",
     .hot_changeable = false},
    {.id = OptionId::kFlushDirtyHigh,
     .name = "flush.dirty_high_percent",
     .environment = "CAIRN_FLUSH_DIRTY_HIGH_PERCENT",
     .flag = "",
     .type = OptionType::kPercent,
     .default_text = "60",
     .value_min = 1,
     .value_max = 95,
     .choices = "",
     .unit = "percent of a tier",
     .description = "Above this share of dirty data the flush starts at once, whatever its age.",
     .advice = "Lower it when bursts of writes find the tier full.",
     .hot_changeable = false},
    {.id = OptionId::kFlushRetry,
     .name = "flush.retry_ms",
     .environment = "CAIRN_FLUSH_RETRY_MS",
     .flag = "",
     .type = OptionType::kMilliseconds,
     .default_text = "1000",
     .value_min = 10,
     .value_max = 3'600'000,
     .choices = "",
     .unit = "milliseconds; also `2s`, `1min`",
     .description =
         "Pause before the first retry after the backing store returned an error; it doubles "
         "with each further failure.",
     .advice = "The data stays in its tier meanwhile, and `cairn status` names the file.",
     .hot_changeable = false},
    {.id = OptionId::kFlushTrigger,
     .name = "flush.trigger",
     .environment = "CAIRN_FLUSH_TRIGGER",
     .flag = "--trigger",
     .type = OptionType::kChoice,
     .default_text = "periodic",
     .value_min = 0,
     .value_max = 0,
     .choices = "periodic|per-operation|per-file|on-exit",
     .unit = "`periodic`, `per-operation`, `per-file` or `on-exit`",
     .description =
         "What starts the flush of a file in mode `persistent-async`: `flush.delay_ms` or "
         "`flush.amount`, each write, its close, or the end of the run.",
     .advice = "`on-exit` keeps the store quiet during the run, as long as the tiers have room; "
               "`per-file` suits files that are written once.",
     .hot_changeable = true},
    {.id = OptionId::kFlushAmount,
     .name = "flush.amount",
     .environment = "CAIRN_FLUSH_AMOUNT",
     .flag = "",
     .type = OptionType::kSize,
     .default_text = "4M",
     .value_min = 4096,
     .value_max = kNoMaximum,
     .choices = "",
     .unit = "bytes, with K, M, G, T (binary)",
     .description = "Dirty bytes of one file that make it due at once, whatever their age.",
     .advice = "About what the backing store writes in one piece: 1M for a disk, a few stripes for "
               "a parallel file system.",
     .hot_changeable = false},
    {.id = OptionId::kEvictLow,
     .name = "evict.low_percent",
     .environment = "CAIRN_EVICT_LOW_PERCENT",
     .flag = "",
     .type = OptionType::kPercent,
     .default_text = "5",
     .value_min = 1,
     .value_max = 50,
     .choices = "",
     .unit = "percent of a tier",
     .description = "With less than this share free, the organizer begins to evict clean data.",
     .advice = "Raise it when bursts of new data find no free bucket.",
     .hot_changeable = false},
    {.id = OptionId::kEvictHigh,
     .name = "evict.high_percent",
     .environment = "CAIRN_EVICT_HIGH_PERCENT",
     .flag = "",
     .type = OptionType::kPercent,
     .default_text = "10",
     .value_min = 2,
     .value_max = 90,
     .choices = "",
     .unit = "percent of a tier",
     .description = "The organizer stops evicting when this share is free again.",
     .advice = "Must be above `evict.low_percent`. The gap is what one round of eviction frees.",
     .hot_changeable = false},
    {.id = OptionId::kBufferDirectories,
     .name = "buffer.directories",
     .environment = "CAIRN_BUFFER_DIRECTORIES",
     .flag = "--buffer",
     .type = OptionType::kDirectoryList,
     .default_text = "",
     .value_min = 0,
     .value_max = 64,
     .choices = "",
     .unit = "list of directories; `:` between them in the environment",
     .description =
         "Files under these directories are buffered. Empty: the working directory of the run.",
     .advice =
         "Name the directories on the slow store. The tiers' own directories, /proc, /sys and "
         "/dev are never buffered.",
     .hot_changeable = true},
    {.id = OptionId::kBufferExclude,
     .name = "buffer.exclude",
     .environment = "CAIRN_BUFFER_EXCLUDE",
     .flag = "--exclude",
     .type = OptionType::kPatternList,
     .default_text = "",
     .value_min = 0,
     .value_max = 64,
     .choices = "",
     .unit = "list of glob patterns; `:` between them in the environment",
     .description = "Files that match are left alone although they lie in a buffered directory.",
     .advice = "Quote them from the shell: `--exclude '*.log'`.",
     .hot_changeable = true},
    {.id = OptionId::kBufferMode,
     .name = "buffer.mode",
     .environment = "CAIRN_BUFFER_MODE",
     .flag = "--mode",
     .type = OptionType::kChoice,
     .default_text = "persistent-async",
     .value_min = 0,
     .value_max = 0,
     .choices = "persistent-async|persistent-sync|scratch|bypass",
     .unit = "`persistent-async`, `persistent-sync`, `scratch` or `bypass`",
     .description =
         "When the backing store has a write: later (see `flush.trigger`), before the write "
         "returns, never, or without any buffering.",
     .advice = "`scratch` for what nobody needs after the run: it is gone at its end.",
     .hot_changeable = true},
    {.id = OptionId::kBufferScratch,
     .name = "buffer.scratch",
     .environment = "CAIRN_BUFFER_SCRATCH",
     .flag = "--scratch",
     .type = OptionType::kDirectoryList,
     .default_text = "",
     .value_min = 0,
     .value_max = 16,
     .choices = "",
     .unit = "list of directories; `:` between them in the environment",
     .description =
         "Directories that the programs see empty, and whose files live in the tiers alone: "
         "neither "
         "names nor data reach the backing store, and all is gone when the run, or the node that "
         "was started with it, ends.",
     .advice = "For temporary and intermediate files. Programs outside see nothing of it.",
     .hot_changeable = true},
    {.id = OptionId::kBufferSwap,
     .name = "buffer.swap",
     .environment = "CAIRN_BUFFER_SWAP",
     .flag = "--swap",
     .type = OptionType::kSize,
     .default_text = "auto",
     .value_min = 0,
     .value_max = kNoMaximum,
     .choices = "",
     .unit = "bytes, with K, M, G, T (binary); `auto`; 0 for none",
     .description =
         "How much scratch data may lie in a swap file below the first scratch directory when the "
         "tiers are full. `auto` is four times the tiers, at most half of what is free there.",
     .advice = "The file takes room only as it is needed, and has no name.",
     .hot_changeable = false},
    {.id = OptionId::kPlacementPolicy,
     .name = "placement.policy",
     .environment = "CAIRN_PLACEMENT_POLICY",
     .flag = "--policy",
     .type = OptionType::kPolicy,
     .default_text = "max-bandwidth",
     .value_min = 0,
     .value_max = 0,
     .choices = "max-bandwidth|maxbw-paper|max-locality|hot-data|round-robin|random|"
                "minimize-io-time|fastest-with-room",
     .unit = "a policy's name, or the path of a plugin",
     .description =
         "Which tier takes new data: `max-bandwidth`, `maxbw-paper`, `max-locality`, "
         "`hot-data`, `round-robin`, `random`, `minimize-io-time`, `fastest-with-room`, or a "
         "shared object that brings a policy.",
     .advice = "`hot-data` when a small part of the data is read again and again, `max-locality` "
               "when files are read in pieces by many processes.",
     .hot_changeable = true},
    {.id = OptionId::kProfileIdle,
     .name = "profile.idle_ms",
     .environment = "CAIRN_PROFILE_IDLE_MS",
     .flag = "",
     .type = OptionType::kMilliseconds,
     .default_text = "30000",
     .value_min = 0,
     .value_max = 3'600'000,
     .choices = "",
     .unit = "milliseconds; also `2s`, `1min`; 0: never",
     .description =
         "A tier whose device nobody has measured is measured after so long without a file call, "
         "with everything stored; the first call ends that, and it is tried again.",
     .advice = "It takes seven seconds for each tier, once, and at most 256 MiB of it. 0 where "
               "`cairn profile` has measured before, or where nothing may be written beside the "
               "programs.",
     .hot_changeable = false},
    {.id = OptionId::kReplacementExpert,
     .name = "replacement.expert",
     .environment = "CAIRN_REPLACEMENT_EXPERT",
     .flag = "",
     .type = OptionType::kChoice,
     .default_text = "ws-plus",
     .value_min = 0,
     .value_max = 0,
     .choices = "ws-plus|learned|s3-fifo|lirs|lru|lfu|random|fifo|mru|farthest-in-future|"
                "segment-score|ws|oldest-first",
     .unit = "the name of an expert",
     .description = "Which blocks leave a tier that runs short of room: what this expert would not "
                    "hold. `ws-plus` follows whichever of `learned`, `s3-fifo`, `lirs` and `lru` "
                    "would have missed least so far; `oldest-first` learns nothing.",
     .advice = "`./dev bench replacement` compares them over traces.",
     .hot_changeable = false},
    {.id = OptionId::kBalanceReads,
     .name = "replacement.balance_reads",
     .environment = "CAIRN_REPLACEMENT_BALANCE_READS",
     .flag = "",
     .type = OptionType::kSwitch,
     .default_text = "off",
     .value_min = 0,
     .value_max = 1,
     .choices = "on|off",
     .unit = "`on` or `off`",
     .description = "Whether a part of what file tiers hold is read from the backing store while "
                    "the tier's device is saturated, as much as makes reading faster in all.",
     .advice = "On where the store is about as fast as a file tier and nobody else needs it.",
     .hot_changeable = false},
    {.id = OptionId::kReplacementAdmission,
     .name = "replacement.admission",
     .environment = "CAIRN_REPLACEMENT_ADMISSION",
     .flag = "",
     .type = OptionType::kChoice,
     .default_text = "value",
     .value_min = 0,
     .value_max = 0,
     .choices = "value|always",
     .unit = "how it is decided",
     .description = "Which clean blocks go to the next tier when they leave one, instead of being "
                    "dropped. `value`: those that will probably be read there often enough to be "
                    "worth the write and its wear, as far as the node has seen which blocks come "
                    "back; until it has, all. `always`: all that there is room for.",
     .advice = "`always` where the tiers below are to be filled whatever it costs, such as for a "
               "later run on the same node. What is dirty, staged in, of a priority above 4, in "
               "reserved room or in a home of its own is moved in any case.",
     .hot_changeable = false},
    {.id = OptionId::kPrefetchBudget,
     .name = "prefetch.budget",
     .environment = "CAIRN_PREFETCH_BUDGET",
     .flag = "",
     .type = OptionType::kPercent,
     .default_text = "25",
     .value_min = 0,
     .value_max = 90,
     .choices = "",
     .unit = "percent of each tier; 0: nothing is fetched ahead",
     .description = "What programs will read next is fetched ahead of its use. So much of the RAM "
                    "tier may hold what was fetched and not used yet; more while a quarter of the "
                    "tier is free. The same part of the file tiers may hold what is wanted later.",
     .advice = "0 where the backing store must be asked for nothing that no program asks for. A "
               "rule's `prefetch: none` does that for single files.",
     .hot_changeable = false},
    {.id = OptionId::kPrefetchOrders,
     .name = "prefetch.orders",
     .environment = "CAIRN_PREFETCH_ORDERS",
     .flag = "",
     .type = OptionType::kFile,
     .default_text = "",
     .value_min = 0,
     .value_max = 0,
     .choices = "",
     .unit = "a file of declarations (docs/orders.md)",
     .description = "In which order training loops read which files: the seeds of their shuffles, "
                    "or lists. Empty: nothing is declared.",
     .advice =
         "What is known is fetched in the right order from the first epoch on, and of what is "
         "in the tiers already, what will be read soonest stays. A declaration that does not "
         "match what is read is dropped, and node.log says so.",
     .hot_changeable = false},
    {.id = OptionId::kPrefetchRemember,
     .name = "prefetch.remember",
     .environment = "CAIRN_PREFETCH_REMEMBER",
     .flag = "",
     .type = OptionType::kFile,
     .default_text = "auto",
     .value_min = 0,
     .value_max = 0,
     .choices = "",
     .unit = "a directory; `auto`; `none`",
     .description =
         "Where the order in which files were read is kept when a node ends, so that a program "
         "that reads them in the same order is served ahead from its second run on, whichever "
         "node it runs on. `auto` is `$XDG_STATE_HOME/cairn/orders`, else `/var/lib/cairn/orders` "
         "for root and `~/.local/state/cairn/orders` for others.",
     .advice = "At most 64 MiB in 1024 files, without the names of what was read; what was used "
               "longest ago goes first. `none` where each run must begin knowing nothing.",
     .hot_changeable = false},
    {.id = OptionId::kPrefetchByHeat,
     .name = "prefetch.by_heat",
     .environment = "CAIRN_PREFETCH_BY_HEAT",
     .flag = "",
     .type = OptionType::kSwitch,
     .default_text = "off",
     .value_min = 0,
     .value_max = 1,
     .choices = "on|off",
     .unit = "`on` or `off`",
     .description = "Whether the segments of open files that have the highest scores (`cairn "
                    "heatmap`) are fetched and brought up, and those that they displace moved "
                    "down, in the part of the tiers that `prefetch.budget` names.",
     .advice = "On where programs come back to the same parts of files in no order that could be "
               "foreseen. What is read evenly is fetched in vain by it.",
     .hot_changeable = false},
    {.id = OptionId::kPrefetchPlugin,
     .name = "prefetch.plugin",
     .environment = "CAIRN_PREFETCH_PLUGIN",
     .flag = "",
     .type = OptionType::kFile,
     .default_text = "",
     .value_min = 0,
     .value_max = 0,
     .choices = "",
     .unit = "the path of a plugin (include/cairn/predictor_plugin.h)",
     .description =
         "A shared object that brings a predictor: what it foresees of a program's reads "
         "is fetched ahead while it is right more often than the predictors that are "
         "built in. Empty: those alone.",
     .advice = "For programs that read by a rule which only their authors know; "
               "examples/predictor_plugin/ is one to copy. A plugin that throws or does not return "
               "is not asked any more, and node.log says so.",
     .hot_changeable = false},
    {.id = OptionId::kEventsKeep,
     .name = "events.keep",
     .environment = "CAIRN_EVENTS_KEEP",
     .flag = "",
     .type = OptionType::kPercent,
     .default_text = "100",
     .value_min = 1,
     .value_max = 100,
     .choices = "",
     .unit = "percent",
     .description = "How many of the accesses that programs tell about the node learns from.",
     .advice = "Fewer than all only to see what is lost with them: speed, and no data.",
     .hot_changeable = false},
    {.id = OptionId::kSchema,
     .name = "schema",
     .environment = "CAIRN_SCHEMA",
     .flag = "--schema",
     .type = OptionType::kFile,
     .default_text = "",
     .value_min = 0,
     .value_max = 0,
     .choices = "",
     .unit = "an XML or YAML file (docs/schemas.md)",
     .description = "Rules that say how which files are treated. Empty: no rules.",
     .advice = "What a rule sets for a file is stronger than the options below. `cairn schema "
               "check FILE` says whether it is in order.",
     .hot_changeable = true},
    {.id = OptionId::kClientsMax,
     .name = "clients.max",
     .environment = "CAIRN_CLIENTS_MAX",
     .flag = "",
     .type = OptionType::kCount,
     .default_text = "1024",
     .value_min = 1,
     .value_max = 16384,
     .choices = "",
     .unit = "a number",
     .description = "Processes that can be attached at the same time.",
     .advice = "A process beyond it works on the backing store directly; it does not fail.",
     .hot_changeable = false},
    {.id = OptionId::kObjectsMax,
     .name = "objects.max",
     .environment = "CAIRN_OBJECTS_MAX",
     .flag = "",
     .type = OptionType::kCount,
     .default_text = "auto",
     .value_min = 64,
     .value_max = uint64_t{1} << 32,
     .choices = "",
     .unit = "a number, or `auto`",
     .description =
         "Files that can be buffered at the same time. `auto` follows the tiers' capacity.",
     .advice = "Raise it for millions of tiny files; each costs about 200 bytes.",
     .hot_changeable = false},
    {.id = OptionId::kReport,
     .name = "report",
     .environment = "CAIRN_REPORT",
     .flag = "--no-report",
     .type = OptionType::kSwitch,
     .default_text = "on",
     .value_min = 0,
     .value_max = 1,
     .choices = "on|off",
     .unit = "`on` or `off`",
     .description = "Whether `cairn run` prints its few lines at the end.",
     .advice = "What could not be stored is printed always.",
     .hot_changeable = true},
};

constexpr bool table_follows_ids() {
  size_t index = 0;
  for (const OptionDescription& option : kOptionTable) {
    if (static_cast<size_t>(option.id) != index++) return false;
  }
  return true;
}
static_assert(table_follows_ids(), "option_description() indexes the table by id");

std::string range_text(const OptionDescription& option) {
  if (option.value_max == kNoMaximum) return "at least " + std::to_string(option.value_min);
  return std::to_string(option.value_min) + " to " + std::to_string(option.value_max);
}

}  // namespace

std::span<const OptionDescription> option_table() { return kOptionTable; }

const OptionDescription& option_description(OptionId id) {
  return kOptionTable[static_cast<size_t>(id)];
}

const OptionDescription* find_option(std::string_view name) {
  for (const OptionDescription& option : kOptionTable) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

std::vector<std::string_view> option_choices(const OptionDescription& option) {
  std::vector<std::string_view> choices;
  std::string_view rest = option.choices;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('|'), rest.size());
    choices.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return choices;
}

std::optional<uint64_t> parse_option_number(const OptionDescription& option, std::string_view text,
                                            std::string* problem) {
  std::optional<uint64_t> value;
  const char* expected = "a whole number";
  switch (option.type) {
    case OptionType::kSize:
      value = parse_size(text);
      expected = "a size such as 512M or 4G";
      break;
    case OptionType::kMilliseconds:
      value = parse_duration_ms(text);
      expected = "a duration such as 500 (milliseconds) or 2s";
      break;
    case OptionType::kPercent:
      if (!text.empty() && text.back() == '%') text.remove_suffix(1);
      value = parse_count(text);
      expected = "a percentage";
      break;
    default:
      value = parse_count(text);
      break;
  }
  if (!value) {
    *problem = std::string(option.name) + ": \"" + std::string(text) + "\" is not " + expected;
    return std::nullopt;
  }
  if (*value < option.value_min || *value > option.value_max) {
    *problem = std::string(option.name) + ": " + std::string(text) +
               " is out of range, allowed is " + range_text(option);
    return std::nullopt;
  }
  return value;
}

}  // namespace cairn
