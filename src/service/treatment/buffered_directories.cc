// SPDX-License-Identifier: Apache-2.0
#include "service/treatment/buffered_directories.h"

namespace cairn::node {

std::vector<std::string> BufferedDirectories::all() const {
  std::vector<std::string> directories = config_.buffer_directories;
  for (const Run& run : runs_.all()) directories.push_back(run.directory);
  return directories;
}

const char* part_below(const std::string& path, const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    if (path.size() > directory.size() && path.starts_with(directory) &&
        path[directory.size()] == '/')
      return path.c_str() + directory.size() + 1;
  }
  return nullptr;
}

ObjectHandling handling_for_reader(const NodeMemory& memory, const BufferedDirectories& directories,
                                   const std::string& path, std::uint64_t size) {
  const std::vector<std::string> buffered = directories.all();
  RuleQuestion question;
  question.path = path.c_str();
  question.size = size;
  question.reads = true;
  question.below = part_below(path, buffered);
  return memory.rules().decide(question, memory.rules().default_handling());
}

}  // namespace cairn::node
