// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/file_selection.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/terminal/failure.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(std::istream& stream) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

void add_files(CLI::App& app, FileSelection& files) {
  add_text(app, "--node", files.node, kNodeHelp, "NAME");
  add_text(app, "--from", files.list_file, "A file with one path a line; - for standard input",
           "FILE");
}

std::vector<std::string> named_paths(const FileSelection& files) {
  std::vector<std::string> paths = files.paths;
  if (!files.list_file.empty()) {
    std::vector<std::string> more;
    if (files.list_file == "-") {
      more = lines_of(std::cin);
    } else {
      std::ifstream stream(files.list_file);
      if (!stream)
        throw Failure(fmt::format("--from {}: {}", files.list_file, std::strerror(errno)),
                      "name a file with one path a line, or - for standard input");
      more = lines_of(stream);
      if (stream.bad())
        throw Failure(fmt::format("--from {}: cannot be read", files.list_file),
                      "name a file with one path a line, or - for standard input");
    }
    paths.insert(paths.end(), more.begin(), more.end());
  }
  if (paths.empty()) throw Failure("no files are named", "name some, or give a list with --from");
  return paths;
}

std::string canonical(const std::string& path, const char* remedy) {
  std::error_code error;
  const fs::path result = fs::canonical(path, error);
  if (error) throw Failure(fmt::format("{}: {}", path, error.message()), remedy);
  return result.string();
}

namespace {

// What vanishes meanwhile, and folders that may not be read, are passed over.
void walk(const fs::path& directory, const VisitedFiles& visit) {
  if (visit.directory) visit.directory(directory.string());
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const fs::file_type type = at->symlink_status(gone).type();
    if (type == fs::file_type::regular) visit.file(at->path().string());
    if (type == fs::file_type::directory) walk(at->path(), visit);
  }
}

}  // namespace

void for_each_file(const std::vector<std::string>& paths, const VisitedFiles& visit) {
  for (const std::string& path : paths) {
    const std::string whole = canonical(path);
    if (fs::is_directory(whole)) {
      walk(whole, visit);
    } else {
      visit.file(whole);
    }
  }
}

}  // namespace cairn::cli
