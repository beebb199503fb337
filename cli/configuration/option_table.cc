// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/option_table.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/handling.h"
#include "cli/configuration/option_access.h"

namespace cairn::cli {
namespace {

template <typename Word, size_t Count>
constexpr std::array<std::string_view, Count> names_of_all() {
  std::array<std::string_view, Count> names;
  for (size_t index = 0; index < Count; ++index) names[index] = name_of(static_cast<Word>(index));
  return names;
}

// Where the value is an enumeration or a truth, a choice stands at the place of its value.
constexpr auto kModes = names_of_all<BufferingMode, kBufferingModes>();
constexpr auto kTriggers = names_of_all<FlushTrigger, kFlushTriggers>();
constexpr auto kLevels = names_of_all<Durability, kDurabilities>();
constexpr std::array<std::string_view, 3> kChecksums = {"movement", "all", "off"};
constexpr std::array<std::string_view, 3> kHugePages = {"never", "auto", "hugetlb"};
static_assert(static_cast<int>(HugePages::kNever) == 0 && static_cast<int>(HugePages::kAuto) == 1 &&
              static_cast<int>(HugePages::kHugetlb) == 2);
constexpr std::array<std::string_view, 2> kAdmissions = {"always", "value"};
// The names of the experts (policy/replacement/experts.h), and of the policies that learn nothing
// (policy/replacement/policies.h).
constexpr std::array<std::string_view, 9> kExperts = {
    "ws-plus", "learned", "lru", "lfu", "random", "segment-score", "ws", "oldest-first", "fifo"};

// A year.
constexpr uint64_t kForetoldMsMax = uint64_t{366} * 86'400 * 1000;

constexpr Option kOptionTable[] = {
    {.name = "node.name",
     .type = OptionType::kName,
     .default_text = "default",
     .unit = "letters, digits, `_`, `-`, `.`; at most 48",
     .flag = {"--name", "NAME", "Name of the node (default: \"default\")", FlagOffer::kByUp},
     .description = "Name of a node that `cairn up` starts; other commands take it by `--node`.",
     .advice = "Give each workflow of a user on a machine its own. Private nodes of `cairn run` "
               "have the names that begin with `run-`.",
     .access = fields::kWaitingText<&Draft::name, &NodeConfig::name>},
    {.name = "ram.capacity",
     .type = OptionType::kSize,
     .default_text = "auto",
     .unit = "bytes, with K, M, G, T (binary); `auto`; 0 for no RAM tier",
     .flag = {"--ram", "SIZE", "Capacity of the RAM tier; 0 for none"},
     .description = "Bytes of memory that hold buffered data. `auto` is a quarter of MemAvailable, "
                    "and at most a quarter of what the memory cgroup still allows.",
     .advice = "The working set of the program, if the node can spare it. Leave the program its "
               "own memory: the kernel cannot reclaim tier memory under pressure.",
     .access = fields::kSizeOrAuto<&Draft::ram_bytes, &NodeConfig::ram_capacity_bytes>},
    {.name = "ram.huge_pages",
     .type = OptionType::kChoice,
     .default_text = "auto",
     .choices = kHugePages,
     .flag = {"--huge-pages", "MODE", "auto, never or hugetlb"},
     .description = "Which pages the RAM tier asks for. `auto` uses transparent huge pages where "
                    "the kernel grants them to shared memory, `hugetlb` uses reserved ones.",
     .advice = "Huge pages make every hit 10 to 25 % faster. `cairn doctor` says what the "
               "administrator would set.",
     .advanced = true,
     .access = fields::kChoice<&NodeConfig::huge_pages>},
    {.name = "tiers",
     .type = OptionType::kTierList,
     .default_text = "auto",
     .unit = "list of `{name, directory, capacity, durable}`; `DIR:SIZE` or `DIR:SIZE:durable` on "
             "the command line",
     .flag = {"--tier", "DIR:SIZE[:durable]",
              "A file tier; repeatable, fastest first; \"none\" for none"},
     .description = "File tiers below RAM, fastest first. `auto` takes a local solid-state disk "
                    "with room (at least 20 % and 16 GiB free) if one is found; an empty list "
                    "means none. One tier may be durable: a log in it has what programs fsync, see "
                    "`durability.level`.",
     .advice = "Each tier is one preallocated file in its directory. Never on tmpfs, and not on "
               "the disk whose files are buffered.",
     .access = {fields::set_tiers, fields::get_tiers}},
    {.name = "checksums",
     .type = OptionType::kChoice,
     .default_text = "movement",
     .choices = kChecksums,
     .flag = {"--checksums", "WHEN", "movement, all or off: when bytes meet their checksums"},
     .description =
         "When the bytes of a page are compared with the checksum that they had: `movement` "
         "whenever they leave for another tier or come from a file tier, `all` also "
         "before the first read of what has come from the store. A page that is not what "
         "it was is read from the store again; where it has not been stored yet, the "
         "read fails with EIO.",
     .advice = "Leave it: a hit in RAM costs nothing, and a file tier that forgets or mixes up "
               "bytes is found out. `all` where the memory itself is in doubt.",
     .access = fields::kChoice<&NodeConfig::checksums>},
    {.name = "flush.delay_ms",
     .type = OptionType::kMilliseconds,
     .default_text = "500",
     .value_max = 3'600'000,
     .description = "How long written data may stay dirty before the background flush takes it.",
     .advice = "Longer gathers larger writes and absorbs overwrites; shorter leaves less to drain.",
     .access = fields::kNumber<&NodeConfig::flush_delay_ms>},
    {.name = "flush.streams",
     .type = OptionType::kCount,
     .default_text = "2",
     .value_min = 1,
     .value_max = 64,
     .description = "Parallel writers to the backing store.",
     .advice = "1 for a single spinning disk, 4 to 16 for a parallel file system.",
     .access = fields::kNumber<&NodeConfig::flush_streams>},
    {.name = "flush.dirty_high_percent",
     .type = OptionType::kPercent,
     .default_text = "60",
     .value_min = 1,
     .value_max = 95,
     .description = "Above this share of dirty data the flush starts at once, whatever its age.",
     .advice = "Lower it when bursts of writes find the tier full.",
     .advanced = true,
     .access = fields::kNumber<&NodeConfig::flush_dirty_high_percent>},
    {.name = "flush.retry_ms",
     .type = OptionType::kMilliseconds,
     .default_text = "1000",
     .value_min = 10,
     .value_max = 3'600'000,
     .description = "Pause before the first retry after the backing store returned an error; it "
                    "doubles with each further failure.",
     .advice = "The data stays in its tier meanwhile, and `cairn status` names the file.",
     .advanced = true,
     .access = fields::kNumber<&NodeConfig::flush_retry_ms>},
    {.name = "flush.trigger",
     .type = OptionType::kChoice,
     .default_text = "periodic",
     .choices = kTriggers,
     .flag = {"--trigger", "TRIGGER", "periodic, per-operation, per-file or on-exit"},
     .description = "What starts the flush of a file in mode `persistent-async`: `flush.delay_ms` "
                    "or `flush.amount`, each write, its close, or the end of the run.",
     .advice = "`on-exit` keeps the store quiet during the run, as long as the tiers have room; "
               "`per-file` suits files that a program writes once.",
     .hot_changeable = true,
     .access = fields::kChoice<&NodeConfig::trigger>},
    {.name = "flush.amount",
     .type = OptionType::kSize,
     .default_text = "4M",
     .value_min = 4096,
     .description = "Dirty bytes of one file that make it due at once, whatever their age.",
     .advice = "About what the backing store writes in one piece: 1M for a disk, a few stripes for "
               "a parallel file system.",
     .advanced = true,
     .access = fields::kNumber<&NodeConfig::flush_amount_bytes>},
    {.name = "durability.level",
     .type = OptionType::kChoice,
     .default_text = "auto",
     .choices = kLevels,
     .unit = "`store`, `node`; `auto`",
     .flag = {"--durability", "LEVEL", "node or store: what a finished fsync survives"},
     .description = "What a finished fsync survives: `store` means that the backing store has the "
                    "data; `node`, that the log of the durable tier has it, from where it gets to "
                    "the store also after a crash of the machine. `auto` is `node` where a tier is "
                    "durable.",
     .advice = "`store` for files that others have to see after the loss of this machine.",
     .hot_changeable = true,
     .access = {fields::set_durability, fields::get_choice<&NodeConfig::durability>}},
    {.name = "durability.log_size",
     .type = OptionType::kSize,
     .default_text = "auto",
     .value_min = uint64_t{16} << 20,
     .unit = "bytes, with K, M, G, T (binary); `auto`",
     .description = "How much of the durable tier is its log. `auto` is a quarter of the tier, at "
                    "least 16 MiB and at most 4 GiB.",
     .advice = "A full log makes fsync as slow as the store until there is room again: give it "
               "what programs fsync in the time that the store takes to have it.",
     .advanced = true,
     .access = fields::kSizeIfAny<&Draft::log_bytes, &NodeConfig::durable_log_bytes>},
    {.name = "checkpoint.interval",
     .type = OptionType::kCount,
     .default_text = "0",
     .value_max = 86'400,
     .unit = "seconds; 0: never",
     .description = "With a durable tier, what is dirty also gets to the log without any fsync, "
                    "once in so many seconds. A crash of the machine loses no more than that.",
     .advice = "Off, as a program that wants its data safe says so by fsync. 10 to 60 for programs "
               "that never do.",
     .access = fields::kNumber<&NodeConfig::checkpoint_seconds>},
    {.name = "evict.low_percent",
     .type = OptionType::kPercent,
     .default_text = "5",
     .value_min = 1,
     .value_max = 50,
     .description = "With less than this share free, the organizer begins to evict clean data.",
     .advice = "Raise it when bursts of new data find no free bucket.",
     .advanced = true,
     .access = fields::kNumber<&NodeConfig::evict_low_percent>},
    {.name = "evict.high_percent",
     .type = OptionType::kPercent,
     .default_text = "10",
     .value_min = 2,
     .value_max = 90,
     .description = "The organizer stops evicting when this share is free again.",
     .advice = "Must be above `evict.low_percent`. The gap is what one round of eviction frees.",
     .advanced = true,
     .access = fields::kNumber<&NodeConfig::evict_high_percent>},
    {.name = "buffer.directories",
     .type = OptionType::kDirectoryList,
     .default_text = "",
     .flag = {"--buffer", "DIR",
              "Buffer the files below DIR; repeatable (default: working directory)"},
     .description = "Cairn buffers the files below these directories. Empty: those below the "
                    "working directory of the run.",
     .advice = "Name the directories on the slow store. Cairn never buffers the tiers' own "
               "directories, /proc, /sys and /dev.",
     .when_empty = "working directory of each run",
     .hot_changeable = true,
     .access = fields::kWaitingList<&Draft::buffer, &NodeConfig::buffer_directories>},
    {.name = "buffer.exclude",
     .type = OptionType::kPatternList,
     .default_text = "",
     .flag = {"--exclude", "GLOB", "Leave matching files alone; repeatable"},
     .description = "Cairn leaves files that match alone, although they lie in a buffered "
                    "directory.",
     .advice = "Quote them from the shell: `--exclude '*.log'`.",
     .when_empty = "nothing",
     .hot_changeable = true,
     .access = {fields::set_excluded_patterns, fields::get_list<&NodeConfig::buffer_exclude>}},
    {.name = "buffer.mode",
     .type = OptionType::kChoice,
     .default_text = "persistent-async",
     .choices = kModes,
     .flag = {"--mode", "MODE", "persistent-async, persistent-sync, scratch or bypass"},
     .description = "When the backing store has a write: later (see `flush.trigger`), before the "
                    "write returns, never, or without any buffering.",
     .advice = "`scratch` for what nobody needs after the run: it is gone at its end.",
     .hot_changeable = true,
     .access = fields::kChoice<&NodeConfig::mode>},
    {.name = "buffer.scratch",
     .type = OptionType::kDirectoryList,
     .default_text = "",
     .flag = {"--scratch", "DIR",
              "Keep new files of DIR in the tiers alone, until the end; repeatable"},
     .description = "Programs see these directories empty, and their files live in the tiers "
                    "alone: neither names nor data reach the backing store, and all is gone when "
                    "the run ends, or the node that was started with them.",
     .advice = "For temporary and intermediate files. Programs outside see nothing of it.",
     .when_empty = "nothing",
     .hot_changeable = true,
     .access = fields::kWaitingList<&Draft::scratch, &NodeConfig::scratch_directories>},
    {.name = "buffer.swap",
     .type = OptionType::kSize,
     .default_text = "auto",
     .unit = "bytes, with K, M, G, T (binary); `auto`; 0 for none",
     .flag = {"--swap", "SIZE", "Room for scratch data when the tiers are full"},
     .description = "How much scratch data may lie in a swap file below the first scratch "
                    "directory when the tiers are full. `auto` is four times the tiers, at most "
                    "half of the free space there.",
     .advice = "The file takes room only as scratch data needs it, and has no name.",
     .access = fields::kSizeOrAuto<&Draft::swap_bytes, &NodeConfig::swap_capacity_bytes>},
    {.name = "placement.policy",
     .type = OptionType::kPolicy,
     .default_text = "max-bandwidth",
     .choices = kPlacementPolicyNames,
     .flag = {"--policy", "POLICY", "Placement policy, or the path of a plugin"},
     .description = "Which tier takes new data: the name of a policy, or a shared object that "
                    "brings one.",
     .advice = "`hot-data` when programs read a small part of the data again and again, "
               "`max-locality` when many processes read files in pieces.",
     .hot_changeable = true,
     .access = {fields::set_placement_policy, fields::get_text<&NodeConfig::placement_policy>}},
    {.name = "profile.idle_ms",
     .type = OptionType::kMilliseconds,
     .default_text = "30000",
     .value_max = 3'600'000,
     .unit = "milliseconds; also `2s`, `1min`; 0: never",
     .description = "After so long without a file call, and with everything stored, the node "
                    "measures a tier whose device nobody has measured. The first call ends that, "
                    "and the node tries again later.",
     .advice = "It takes seven seconds for each tier, once, and at most 256 MiB of it. 0 where "
               "`cairn profile` has measured before, or where nothing may be written beside the "
               "programs.",
     .advanced = true,
     .access = fields::kNumber<&NodeConfig::profile_idle_ms>},
    {.name = "replacement.expert",
     .type = OptionType::kChoice,
     .default_text = "ws-plus",
     .choices = kExperts,
     .description = "Which blocks leave a tier that runs short of room: those that this expert "
                    "would not hold. `ws-plus` follows whichever of `learned`, `lru` and two "
                    "others (s3-fifo, lirs) would have missed least so far. Two learn nothing: "
                    "by `oldest-first` the blocks unused longest leave, by `fifo` those that came "
                    "first.",
     .advice = "`cairn trace replay` counts what each expert would have missed of a recorded "
               "trace.",
     .access = fields::kChosenText<&NodeConfig::replacement_expert>},
    {.name = "replacement.balance_reads",
     .type = OptionType::kSwitch,
     .default_text = "off",
     .description = "While the device of a file tier is saturated, the backing store serves a part "
                    "of the reads of what the tier holds: as much as makes reading faster in all.",
     .advice = "On where the store is about as fast as a file tier and nobody else needs it.",
     .advanced = true,
     .access = fields::kOnOrOff<&NodeConfig::balances_reads>},
    {.name = "replacement.admission",
     .type = OptionType::kChoice,
     .default_text = "value",
     .choices = kAdmissions,
     .description = "Which clean blocks go to the next tier when they leave one; the others are "
                    "dropped. `value`: those that programs will probably read there often enough "
                    "to be worth the write and its wear, as far as the node has seen which blocks "
                    "come back; until it has, all. `always`: all that there is room for.",
     .advice = "`always` where the tiers below are to be filled at any cost, such as for a later "
               "run on the same node. Dirty blocks, and those that are staged in, of a priority "
               "above 4, in reserved room or in a home of their own, move in any case.",
     .advanced = true,
     .access = fields::kChoice<&NodeConfig::admits_by_value>},
    {.name = "prefetch.budget",
     .type = OptionType::kPercent,
     .default_text = "25",
     .value_max = 90,
     .unit = "percent of each tier; 0: no prefetching",
     .description = "The node fetches what programs will read next. So much of the RAM tier may "
                    "hold what it fetched and nobody has used yet; more while a quarter of the "
                    "tier is free. The same part of the file tiers may hold data for later.",
     .advice = "0 where nothing may read the backing store that no program asks for. A rule's "
               "`prefetch: none` does that for single files.",
     .access = fields::kNumber<&NodeConfig::prefetch_percent>},
    {.name = "prefetch.orders",
     .type = OptionType::kFile,
     .default_text = "",
     .unit = "a file of declarations (docs/orders.md)",
     .description = "In which order training loops read which files: the seeds of their shuffles, "
                    "or lists. Empty: nothing is declared.",
     .advice = "The node fetches in the right order from the first epoch on, and keeps those "
               "blocks in the tiers that programs read soonest. It drops a declaration that does "
               "not match the reads, and says so in node.log.",
     .access = {fields::set_declared_orders, fields::get_text<&NodeConfig::orders_file>}},
    {.name = "prefetch.remember",
     .type = OptionType::kFile,
     .default_text = "auto",
     .unit = "a directory; `auto`; `none`",
     .description = "Where a node keeps the order in which programs read files, and the boxes in "
                    "which they read arrays, when it ends. A program that reads them in the same "
                    "order is served ahead from its second run on, whichever node it runs on. "
                    "`auto` is `$XDG_STATE_HOME/cairn/orders`, else `/var/lib/cairn/orders` for "
                    "root and `~/.local/state/cairn/orders` for others.",
     .advice = "At most 64 MiB in 1024 files, and 400 KiB of arrays, without the names of the "
               "files read; the least recently used goes first. `none` where each run must begin "
               "without knowledge.",
     .access = fields::kWaitingText<&Draft::remember, &NodeConfig::remember_directory>},
    {.name = "prefetch.by_heat",
     .type = OptionType::kSwitch,
     .default_text = "off",
     .description = "The node brings up the segments of open files that have the highest scores "
                    "(`cairn heatmap`), and moves down those that they displace, in the part of "
                    "the tiers that `prefetch.budget` names.",
     .advice = "On where programs come back to the same parts of files in no order that a "
               "predictor could find. Evenly read files gain nothing by it.",
     .advanced = true,
     .access = fields::kOnOrOff<&NodeConfig::prefetches_by_heat>},
    {.name = "prefetch.plugin",
     .type = OptionType::kFile,
     .default_text = "",
     .unit = "the path of a plugin (include/cairn/predictor_plugin.h)",
     .description = "A shared object that brings a predictor. The node fetches what it foresees of "
                    "a program's reads while it is right more often than the predictors that are "
                    "built in. Empty: those alone.",
     .advice = "For programs that read by a rule which only their authors know; "
               "examples/predictor_plugin/ is one to copy. The node stops asking a plugin that "
               "throws or does not return, and says so in node.log.",
     .advanced = true,
     .access = {fields::set_predictor, fields::get_text<&NodeConfig::predictor_file>}},
    {.name = "schema",
     .type = OptionType::kFile,
     .default_text = "",
     .unit = "an XML or YAML file (docs/schemas.md)",
     .flag = {"--schema", "FILE", "Rules for files, XML or YAML (docs/schemas.md)"},
     .description = "Rules that treat some files otherwise than the rest. Empty: no rules.",
     .advice = "What a rule sets for a file is stronger than the other options. `cairn schema "
               "check FILE` says whether a schema is in order.",
     .hot_changeable = true,
     .access = fields::kWaitingText<&Draft::schema, &NodeConfig::schema_file>},
    {.name = "clients.max",
     .type = OptionType::kCount,
     .default_text = "1024",
     .value_min = 1,
     .value_max = 16384,
     .description = "Processes that can be attached at the same time.",
     .advice = "A process beyond it works on the backing store directly; it does not fail.",
     .advanced = true,
     .access = fields::kNumber<&NodeConfig::clients_max>},
    {.name = "objects.max",
     .type = OptionType::kCount,
     .default_text = "auto",
     .value_min = 64,
     .value_max = uint64_t{1} << 32,
     .unit = "a number, or `auto`",
     .description = "Files that the node can buffer at the same time. `auto` follows the "
                    "capacity of the tiers.",
     .advice = "Raise it for millions of tiny files; each costs about 200 bytes.",
     .advanced = true,
     .access = fields::kNumberOrAuto<&NodeConfig::objects_max>},
    {.name = "grace",
     .type = OptionType::kCount,
     .default_text = "0",
     .value_max = 86'400,
     .unit = "seconds; 0: as long as it takes",
     .flag = {"--grace", "SECONDS", "Time to store what is left at the end", FlagOffer::kByRun},
     .description =
         "How long `cairn run` goes on storing after the program has ended, or after the first "
         "SIGTERM or SIGINT if that was earlier. The node keeps the rest, goes on storing by "
         "itself, and ends then. A durable tier gets what is dirty first: if the node is killed "
         "too, `cairn recover` finishes the job. A store that hangs while it flushes its own "
         "cache (fsync) is waited for.",
     .advice = "In a batch job, some seconds less than the system gives between SIGTERM and "
               "SIGKILL (Slurm: KillWait, or --signal).",
     .hot_changeable = true,
     .access = fields::kNumber<&Configuration::grace_seconds>},
    {.name = "advice.io_ms",
     .type = OptionType::kMilliseconds,
     .default_text = "0",
     .value_max = kForetoldMsMax,
     .description = "The I/O time that `cairn advise` foretells of a run with this configuration; "
                    "0: nothing was foretold. `cairn run` says at its end what came of it, and "
                    "keeps it for `cairn advise --history`.",
     .advice = "`cairn advise --write` sets these. Leave them out of a file for other programs.",
     .hot_changeable = true,
     .advanced = true,
     .access = fields::kNumber<&Configuration::advised_io_ms>},
    {.name = "advice.io_min_ms",
     .type = OptionType::kMilliseconds,
     .default_text = "0",
     .value_max = kForetoldMsMax,
     .description = "The lower end of the interval that has 9 of 10 such runs.",
     .advice = "See `advice.io_ms`.",
     .hot_changeable = true,
     .advanced = true,
     .access = fields::kNumber<&Configuration::advised_io_min_ms>},
    {.name = "advice.io_max_ms",
     .type = OptionType::kMilliseconds,
     .default_text = "0",
     .value_max = kForetoldMsMax,
     .description = "The upper end of that interval.",
     .advice = "See `advice.io_ms`.",
     .hot_changeable = true,
     .advanced = true,
     .access = fields::kNumber<&Configuration::advised_io_max_ms>},
    {.name = "advice.compute_ms",
     .type = OptionType::kMilliseconds,
     .default_text = "0",
     .value_max = kForetoldMsMax,
     .description = "What such a run takes besides its I/O. In mode `bypass` nobody sees the I/O, "
                    "and the time of the whole run is compared with the sum.",
     .advice = "See `advice.io_ms`.",
     .hot_changeable = true,
     .advanced = true,
     .access = fields::kNumber<&Configuration::advised_compute_ms>},
    {.name = "report",
     .type = OptionType::kSwitch,
     .default_text = "on",
     .flag = {"--no-report", "", "Print no report at the end", FlagOffer::kByRun},
     .description = "Whether `cairn run` prints its few lines at the end.",
     .advice = "It names data that could not be stored in any case.",
     .hot_changeable = true,
     .access = fields::kOnOrOff<&Configuration::report>},
};

}  // namespace

std::span<const Option> option_table() { return kOptionTable; }

const Option* find_option(std::string_view name) {
  const auto* found = std::find_if(std::begin(kOptionTable), std::end(kOptionTable),
                                   [name](const Option& option) { return option.name == name; });
  return found == std::end(kOptionTable) ? nullptr : found;
}

const Option& option_named(std::string_view name) {
  const Option* option = find_option(name);
  CAIRN_CHECK(option != nullptr);
  return *option;
}

}  // namespace cairn::cli
