// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "cli/configuration/config_file.h"
#include "cli/configuration/configuration_text.h"
#include "cli/configuration/option_table.h"
#include "cli/configuration/setting_flags.h"
#include "cli/terminal/failure.h"
#include "policy/rules/rule_property.h"

namespace cairn::cli {
namespace {

using ::testing::HasSubstr;

// A machine made of files: /proc and /sys as a test wants them.
class ConfigurationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cairn-configuration-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    roots_ = {directory_ + "/proc", directory_ + "/sys"};
    for (const char* part :
         {"/proc", "/proc/self", "/sys", "/sys/fs", "/sys/fs/cgroup", "/sys/fs/cgroup/job"}) {
      ::mkdir((directory_ + part).c_str(), 0700);
    }
    write("/proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n");
    ::setenv("CAIRN_RUN_ROOT", (directory_ + "/r").c_str(), 1);
  }

  void TearDown() override { (void)!::system(("rm -rf " + directory_).c_str()); }

  void write(const std::string& path, const std::string& text) const {
    std::ofstream(directory_ + path) << text;
  }

  Configuration resolve_all(CommandLineSettings settings) const {
    settings.ignore_environment = true;
    settings.flags.try_emplace("tiers", 1, "none");
    return resolve_configuration(settings, ConfigurationScope::kNode, roots_);
  }

  NodeConfig resolve(const CommandLineSettings& settings) const {
    return resolve_all(settings).node;
  }

  std::string failure_of(const CommandLineSettings& settings) const {
    try {
      resolve(settings);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  }

  std::string directory_;
  MachineRoots roots_;
};

TEST_F(ConfigurationTest, TheTablesDefaultsAreThoseOfTheStruct) {
  const NodeConfig node = resolve({});
  const NodeConfig plain;
  EXPECT_EQ(node.flush_delay_ms, plain.flush_delay_ms);
  for (const ResolvedOption& option : node.resolved) {
    const Option& description = *find_option(option.name);
    const bool by_looking = description.default_text == "auto" || description.default_text.empty();
    if (!by_looking) {
      EXPECT_EQ(option.value, description.default_text) << option.name;
    }
  }
}

TEST_F(ConfigurationTest, RamIsAQuarterOfWhatIsAvailable) {
  EXPECT_EQ(resolve({}).ram_capacity_bytes, uint64_t{2} << 30);
}

TEST_F(ConfigurationTest, RamStaysWithinTheMemoryCgroupOfVersionTwo) {
  write("/proc/self/cgroup", "0::/job\n");
  write("/sys/fs/cgroup/job/memory.max", "1073741824\n");
  write("/sys/fs/cgroup/job/memory.current", "536870912\n");
  EXPECT_EQ(resolve({}).ram_capacity_bytes, uint64_t{128} << 20);
  EXPECT_THAT(failure_of({.flags = {{"ram.capacity", {"2G"}}}}),
              HasSubstr("larger than the limit of the memory cgroup"));
}

TEST_F(ConfigurationTest, RamStaysWithinTheMemoryCgroupOfVersionOne) {
  ::mkdir((directory_ + "/sys/fs/cgroup/memory").c_str(), 0700);
  write("/proc/self/cgroup", "5:cpu:/job\n4:memory:/no/longer/visible\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
  EXPECT_EQ(resolve({}).ram_capacity_bytes, uint64_t{512} << 20);
}

TEST_F(ConfigurationTest, NoLimitIsNoLimit) {
  write("/proc/self/cgroup", "0::/job\n4:memory:/\n");
  ::mkdir((directory_ + "/sys/fs/cgroup/memory").c_str(), 0700);
  write("/sys/fs/cgroup/job/memory.max", "max\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(resolve({}).ram_capacity_bytes, uint64_t{2} << 30);
}

// A script passes a variable that is not set.
TEST_F(ConfigurationTest, AnEmptyFlagSaysNothing) {
  const CommandLineSettings empty{.flags = {{"ram.capacity", {""}}, {"buffer.mode", {""}}}};
  EXPECT_EQ(resolve(empty).ram_capacity_bytes, resolve({}).ram_capacity_bytes);
  EXPECT_EQ(node_flag(empty), "");
  EXPECT_EQ(node_flag({.flags = {{"ram.capacity", {"64M"}}}}), "--ram");
}

TEST_F(ConfigurationTest, LargerThanMemoryIsAMistake) {
  EXPECT_THAT(failure_of({.flags = {{"ram.capacity", {"17G"}}}}),
              HasSubstr("larger than the memory of this machine (16 GiB)"));
  EXPECT_THAT(failure_of({.flags = {{"ram.capacity", {"4k"}}}}), HasSubstr("too small"));
  EXPECT_EQ(resolve({.flags = {{"ram.capacity", {"0"}}}}).ram_capacity_bytes, 0U);
}

TEST_F(ConfigurationTest, TheResolvedFileResolvesToTheSame) {
  CommandLineSettings settings;
  settings.flags["node.name"] = {"job"};
  settings.flags["ram.capacity"] = {"64M"};
  settings.flags["ram.huge_pages"] = {"never"};
  settings.flags["tiers"] = {directory_ + ":3M"};
  settings.flags["buffer.exclude"] = {"*.log", "\"odd\" name"};
  write("/in.yaml", "flush: {delay_ms: 2s, streams: 7}\nevict: {high_percent: 12%}\n");
  settings.config_file = directory_ + "/in.yaml";
  const Configuration configuration = resolve_all(settings);
  const NodeConfig& first = configuration.node;
  EXPECT_EQ(first.flush_delay_ms, 2000U);
  write("/out.yaml", configuration_yaml(configuration));
  CommandLineSettings again;
  again.config_file = directory_ + "/out.yaml";
  again.ignore_environment = true;
  const NodeConfig second = resolve_configuration(again, ConfigurationScope::kNode, roots_).node;
  ASSERT_EQ(first.resolved.size(), second.resolved.size());
  for (size_t index = 0; index < first.resolved.size(); ++index) {
    EXPECT_EQ(first.resolved[index].name, second.resolved[index].name);
    EXPECT_EQ(first.resolved[index].value, second.resolved[index].value);
    EXPECT_EQ(first.resolved[index].source, second.resolved[index].source);
  }
}

TEST_F(ConfigurationTest, TheResolvedFileCarriesTheRules) {
  write("/rules.xml",
        "<rules>\n<rule name=\"a\"><path>*.h5</path><place tier=\"ram\"/></rule>\n"
        "<rule><path>b</path><never-buffer>true</never-buffer></rule></rules>");
  write("/plugin.so", "");
  const std::string schema = directory_ + "/rules.xml";
  const std::string plugin = directory_ + "/plugin.so";
  CommandLineSettings settings;
  settings.flags["ram.capacity"] = {"64M"};
  settings.flags["schema"] = {schema};
  settings.flags["buffer.mode"] = {"persistent-sync"};
  settings.flags["flush.trigger"] = {"per-file"};
  settings.flags["placement.policy"] = {plugin};
  write("/settings.yaml", "prefetch:\n  plugin: " + directory_ + "/plugin.so\n");
  settings.config_file = directory_ + "/settings.yaml";
  const Configuration configuration = resolve_all(settings);
  const NodeConfig& first = configuration.node;
  ASSERT_EQ(first.rules.size(), 2U);
  EXPECT_EQ(first.schema_file, schema);
  EXPECT_EQ(first.mode, BufferingMode::kSync);
  EXPECT_EQ(first.trigger, FlushTrigger::kPerFile);
  write("/out.yaml", configuration_yaml(configuration));
  // The service does not read the schema again.
  ::unlink(schema.c_str());
  const NodeConfig second = resolve({.config_file = directory_ + "/out.yaml"});
  EXPECT_EQ(rules_yaml(second.rules), rules_yaml(first.rules));
  EXPECT_EQ(second.rules[1].source, schema + ":3");
  EXPECT_EQ(second.schema_file, first.schema_file);
  EXPECT_EQ(second.mode, first.mode);
  EXPECT_EQ(second.trigger, first.trigger);
  EXPECT_EQ(second.placement_policy, plugin);
  EXPECT_EQ(first.predictor_file, plugin);
  EXPECT_EQ(second.predictor_file, plugin);
  write("/other.yaml", "rules: []");
  const NodeConfig other = resolve({.config_file = directory_ + "/out.yaml",
                                    .flags = {{"schema", {directory_ + "/other.yaml"}}}});
  EXPECT_TRUE(other.rules.empty()) << "another schema replaces the rules of the file";
}

TEST_F(ConfigurationTest, AnAttachedRunReadsItsSchemaToo) {
  write("/rules.yaml", "rules: [{path: a, mode: scratch, place: {tier: elsewhere}}]");
  CommandLineSettings settings;
  settings.ignore_environment = true;
  settings.flags["schema"] = {directory_ + "/rules.yaml"};
  const NodeConfig node =
      resolve_configuration(settings, ConfigurationScope::kAttachedRun, roots_).node;
  ASSERT_EQ(node.rules.size(), 1U);
  EXPECT_THAT(failure_of(settings), HasSubstr("rules.yaml:1: tier \"elsewhere\" does not exist"));
}

TEST_F(ConfigurationTest, ASolidStateDiskIsFoundOnlyWhenItIsNotTheBufferedOne) {
  struct stat status{};
  ASSERT_EQ(::stat(directory_.c_str(), &status), 0);
  EXPECT_FALSE(find_file_tier({directory_}, {"/proc"}, roots_).has_value())
      << "its device is unknown";
  EXPECT_FALSE(find_file_tier({directory_}, {directory_}, {}).has_value())
      << "it is the buffered one";
  EXPECT_FALSE(find_file_tier({"/dev/shm", "/no/such/place"}, {"/proc"}, {}).has_value());
}

TEST_F(ConfigurationTest, ATierIsNotPutWhereEverybodyMayWrite) {
  const std::string tier = directory_ + ":3M";
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  EXPECT_THAT(failure_of({.flags = {{"tiers", {tier}}}}),
              HasSubstr(directory_ + " can be written by every user and has no sticky bit"));
  ASSERT_EQ(::chmod(directory_.c_str(), 01777), 0);
  EXPECT_EQ(resolve({.flags = {{"tiers", {tier}}}}).tiers.size(), 1U);
}

TEST_F(ConfigurationTest, TheDocumentNamesEveryOption) {
  const std::string document = configuration_document();
  for (const Option& option : option_table()) {
    EXPECT_THAT(document, HasSubstr(environment_of(option)));
    const size_t section = document.find("\n### " + std::string(option.name) + "\n");
    ASSERT_NE(section, std::string::npos) << option.name;
    EXPECT_EQ(section > document.find("\n## Advanced options\n"), option.advanced) << option.name;
  }
}

TEST_F(ConfigurationTest, ADurableTierHasALogAndMakesTheLevelNode) {
  const std::string tier = directory_ + ":256M:durable";
  const NodeConfig node = resolve({.flags = {{"tiers", {tier}}}});
  ASSERT_EQ(node.tiers.size(), 1U);
  EXPECT_TRUE(node.tiers[0].is_durable);
  EXPECT_EQ(node.durable_log_bytes, uint64_t{64} << 20);
  EXPECT_EQ(node.durability, Durability::kNode);
  const NodeConfig store = resolve({.flags = {{"tiers", {tier}}, {"durability.level", {"store"}}}});
  EXPECT_EQ(store.durability, Durability::kStore);
  EXPECT_EQ(store.durable_log_bytes, node.durable_log_bytes);
}

TEST_F(ConfigurationTest, TheLevelNodeNeedsADurableTier) {
  EXPECT_THAT(failure_of({.flags = {{"durability.level", {"node"}}}}),
              HasSubstr("--tier DIR:SIZE:durable"));
  EXPECT_THAT(failure_of({.flags = {{"checkpoint.interval", {"10"}}}}),
              HasSubstr("needs a durable tier"));
  EXPECT_THAT(failure_of({.flags = {{"tiers", {directory_ + ":2M:durable"}}}}),
              HasSubstr("too small for a durable tier"));
  EXPECT_EQ(resolve({}).durability, Durability::kStore);
}

}  // namespace
}  // namespace cairn::cli
