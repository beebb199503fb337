// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/profile_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/size_text.h"
#include "cli/configuration/configuration.h"
#include "cli/profile/profile_table.h"
#include "cli/profile/train_command.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"
#include "service/profiler/tier_figures.h"

namespace cairn::cli {
namespace {

using profiler::DeviceClass;
using profiler::DeviceIdentity;
using profiler::DeviceProfile;
using profiler::is_same_device;
using profiler::ProfileStore;

constexpr const char* kMemoryPlace = "ram";

// One line on a terminal that names the place under measurement; nothing elsewhere.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }

  void show(const std::string& place, std::string_view phase, double share) {
    if (!stderr_is_terminal()) return;
    std::string text =
        fmt::format("cairn: {}: {} ... {:.0f} %", printable(place), phase, share * 100);
    if (text.size() >= terminal_width()) text.resize(terminal_width() - 1);
    (void)write_fully(STDERR_FILENO, "\r\033[K" + text);
    is_drawn_ = true;
  }

  void clear() {
    if (is_drawn_) (void)write_fully(STDERR_FILENO, "\r\033[K");
    is_drawn_ = false;
  }

 private:
  bool is_drawn_ = false;
};

void say_problems(const ProfileStore& store) {
  for (const std::string& problem : store.load().problems) say("warning: " + printable(problem));
}

// Measures place after place, and keeps each result at once, so that an interruption loses no
// more than the device at hand.
class Measuring {
 public:
  Measuring(const ProfileOptions& options, const ProfileStore& store) : store_(store) {
    measure_.seconds = options.seconds > 0 ? options.seconds : profiler::kMeasureSecondsDefault;
    if (!options.space.empty()) {
      const auto bytes = parse_size(options.space);
      if (!bytes || *bytes < profiler::kMeasureSpaceMin) {
        throw Failure(fmt::format("--space: \"{}\" is not a size of at least {}", options.space,
                                  format_size(profiler::kMeasureSpaceMin)),
                      "examples: 64M, 1G");
      }
      measure_.space_bytes = *bytes;
    }
  }

  void add_memory() {
    const auto profiles = profiler::profile_memory(options_for(kMemoryPlace));
    progress_.clear();
    if (!profiles.is_ok()) {
      fail(kMemoryPlace, profiles.status(), true);
      return;
    }
    for (const DeviceProfile& profile : profiles.value()) add(profile.identity.name, profile);
  }

  // `wanted`: somebody named it; else it is left out with a word where it cannot be measured.
  void add_directory(const std::string& given, bool wanted) {
    const std::string directory = absolute_path(given);
    if (const DeviceProfile* known = measured_before(directory)) {
      const DeviceProfile profile = *known;
      places_.push_back({directory, profile.identity, profile, source_of(profile)});
      return;
    }
    const auto profile = profiler::profile_directory(directory, options_for(directory));
    progress_.clear();
    if (profile.is_ok()) {
      add(directory, profile.value());
    } else {
      fail(directory, profile.status(), wanted);
    }
  }

  const std::vector<ProfiledPlace>& places() const { return places_; }
  const std::vector<ProfileFailure>& failures() const { return failures_; }

 private:
  static std::string source_of(const DeviceProfile& profile) {
    return profiler::tier_figures(profile).source;
  }

  profiler::MeasureOptions options_for(const std::string& place) {
    profiler::MeasureOptions options = measure_;
    options.progress = [this, place](std::string_view phase, double share) {
      progress_.show(place, phase, share);
    };
    return options;
  }

  const DeviceProfile* measured_before(const std::string& directory) const {
    const auto identity = profiler::identify_directory(directory);
    if (!identity.is_ok() || ::access(directory.c_str(), W_OK | X_OK) != 0) return nullptr;
    for (const ProfiledPlace& place : places_) {
      if (is_same_device(place.identity, identity.value())) return &*place.profile;
    }
    return nullptr;
  }

  void add(const std::string& place, const DeviceProfile& profile) {
    places_.push_back({place, profile.identity, profile, source_of(profile)});
    if (!profile.figures.direct) {
      say(
          fmt::format("{}: the file system knows no direct I/O; the page cache may have a part in "
                      "the figures",
                      printable(place)));
    }
    const Status saved = store_.save(profile);
    if (saved.is_ok() || said_not_kept_) return;
    said_not_kept_ = true;
    say_failure("warning: the figures are shown but not kept: " + printable(saved.message()),
                "set XDG_STATE_HOME to a directory that you may write in");
  }

  void fail(const std::string& place, const Status& status, bool wanted) {
    if (!wanted) {
      say("not measured: " + printable(status.message()));
      return;
    }
    failures_.push_back({place, status.message(), remedy_for(status)});
    say_failure(printable(status.message()), failures_.back().remedy);
  }

  const ProfileStore& store_;
  profiler::MeasureOptions measure_;
  ProgressLine progress_;
  std::vector<ProfiledPlace> places_;
  std::vector<ProfileFailure> failures_;
  bool said_not_kept_ = false;
};

void show(const ProfileOptions& options, const ProfileStore& store,
          const std::vector<ProfiledPlace>& places, const std::vector<ProfileFailure>& failures) {
  if (options.json) {
    const nlohmann::json document = profile_document(store.file(), places, failures);
    using Handling = nlohmann::json::error_handler_t;
    print(document.dump(2, ' ', false, Handling::replace) + "\n");
  } else if (!places.empty()) {
    print(profile_table(places));
  }
}

int measure_places(const ProfileOptions& options, const ProfileStore& store) {
  Measuring measuring(options, store);
  if (options.directories.empty()) {
    CommandLineSettings settings;
    settings.config_file = options.config_file;
    const Configuration configuration = resolve_configuration(settings);
    measuring.add_memory();
    for (const FileTierConfig& tier : configuration.node.tiers) {
      measuring.add_directory(tier.directory, true);
    }
    measuring.add_directory(working_directory(), false);
  }
  for (const std::string& directory : options.directories) {
    measuring.add_directory(directory, true);
  }
  show(options, store, measuring.places(), measuring.failures());
  return measuring.failures().empty() ? kExitOk : kExitRefused;
}

// A place with the figures that a node would take for it.
ProfiledPlace known_place(const std::string& name, const DeviceIdentity& identity,
                          const std::vector<DeviceProfile>& known) {
  ProfiledPlace place = {name, identity, std::nullopt,
                         profiler::tier_figures(identity.device_class).source};
  for (const DeviceProfile& profile : known) {
    if (!is_same_device(profile.identity, identity)) continue;
    place.profile = profile;
    place.from = profiler::tier_figures(profile).source;
  }
  return place;
}

bool is_listed(const std::vector<ProfiledPlace>& places, const DeviceIdentity& identity) {
  return std::any_of(places.begin(), places.end(), [&identity](const ProfiledPlace& place) {
    return is_same_device(place.identity, identity);
  });
}

// Memory, every mounted device and network file system (once each), disks that nobody mounted, and
// devices that are gone but have figures.
std::vector<ProfiledPlace> find_places(const std::vector<DeviceProfile>& known) {
  const profiler::Machine machine = profiler::scan_machine();
  std::vector<ProfiledPlace> places;
  for (const DeviceIdentity& memory : profiler::identify_memory(machine)) {
    places.push_back(known_place(memory.name, memory, known));
  }
  std::vector<std::string> in_use;  // disks and partitions with something mounted
  for (const profiler::Mount& mount : machine.mounts) {
    DeviceIdentity identity = profiler::identify_mount(mount);
    const auto device = profiler::device_of({}, mount);
    if (device) {
      in_use.insert(in_use.end(), {device->name, device->disk});
      // The file system itself may know more; a local one answers.
      const auto closer = profiler::identify_directory(mount.point);
      if (closer.is_ok()) identity = closer.value();
    } else if (identity.device_class != DeviceClass::kNetwork) {
      continue;
    }
    if (!is_listed(places, identity)) places.push_back(known_place(mount.point, identity, known));
  }
  for (const profiler::BlockDevice& device : machine.devices) {
    if (std::find(in_use.begin(), in_use.end(), device.name) != in_use.end()) continue;
    DeviceIdentity identity;
    identity.host = machine.host;
    identity.device_class = device.device_class;
    identity.name = device.name;
    identity.size_bytes = device.size_bytes;
    places.push_back({"/dev/" + device.name, identity, std::nullopt, "not mounted", false});
  }
  for (const DeviceProfile& profile : known) {
    if (profile.identity.host != machine.host || is_listed(places, profile.identity)) continue;
    places.push_back({profile.directory, profile.identity, profile,
                      profiler::tier_figures(profile).source + ", gone since"});
  }
  return places;
}

int list_places(const ProfileOptions& options, const ProfileStore& store) {
  const std::vector<DeviceProfile> known = store.load().profiles;
  std::vector<ProfileFailure> failures;
  std::vector<ProfiledPlace> places;
  if (options.directories.empty()) places = find_places(known);
  for (const std::string& given : options.directories) {
    const std::string directory = absolute_path(given);
    const auto identity = profiler::identify_directory(directory);
    if (identity.is_ok()) {
      places.push_back(known_place(directory, identity.value(), known));
      continue;
    }
    failures.push_back({directory, identity.status().message(), remedy_for(identity.status())});
    say_failure(printable(failures.back().message), failures.back().remedy);
  }
  show(options, store, places, failures);
  return failures.empty() ? kExitOk : kExitRefused;
}

int forget_places(const ProfileOptions& options, const ProfileStore& store) {
  std::vector<std::string> directories;
  std::vector<DeviceIdentity> identities;
  for (const std::string& given : options.directories) {
    directories.push_back(absolute_path(given));
    const auto identity = profiler::identify_directory(directories.back());
    if (identity.is_ok()) identities.push_back(identity.value());
  }
  // A directory that is gone is known by the name that it was measured under.
  const auto forgotten = store.forget([&](const DeviceProfile& profile) {
    return directories.empty() ||
           std::find(directories.begin(), directories.end(), profile.directory) !=
               directories.end() ||
           std::any_of(identities.begin(), identities.end(), [&](const DeviceIdentity& identity) {
             return is_same_device(profile.identity, identity);
           });
  });
  if (!forgotten.is_ok()) throw Failure(forgotten.status().message());
  say(fmt::format("forgot {} {}", forgotten.value(),
                  forgotten.value() == 1 ? "profile" : "profiles"));
  return kExitOk;
}

}  // namespace

int run_profile(const ProfileOptions& options) {
  const ProfileStore store;
  if (options.list && options.forget) {
    throw Failure("--list and --forget exclude each other", "give one of them");
  }
  check_training_options(options);
  say_problems(store);
  if (options.train) return run_training(options, store);
  if (options.forget) return forget_places(options, store);
  return options.list ? list_places(options, store) : measure_places(options, store);
}

}  // namespace cairn::cli
