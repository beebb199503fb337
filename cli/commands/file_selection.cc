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
    }
    paths.insert(paths.end(), more.begin(), more.end());
  }
  if (paths.empty()) throw Failure("no files are named", "name some, or give a list with --from");
  return paths;
}

std::string canonical(const std::string& path) {
  std::error_code error;
  const fs::path result = fs::canonical(path, error);
  if (error) {
    throw Failure(fmt::format("{}: {}", path, error.message()),
                  "name an existing file, or a pattern in quotes");
  }
  return result.string();
}

void for_each_file(const std::vector<std::string>& paths,
                   const std::function<void(const std::string&)>& visit,
                   const std::function<void(const std::string&)>& visit_directory) {
  for (const std::string& path : paths) {
    const std::string whole = canonical(path);
    if (!fs::is_directory(whole)) {
      visit(whole);
      continue;
    }
    if (visit_directory) visit_directory(whole);
    std::error_code error;
    for (fs::recursive_directory_iterator
             at(whole, fs::directory_options::skip_permission_denied, error),
         end;
         !error && at != end; at.increment(error)) {
      if (at->is_symlink(error)) continue;
      if (at->is_regular_file(error)) visit(at->path().string());
      if (visit_directory && at->is_directory(error)) visit_directory(at->path().string());
    }
    if (error) throw Failure(fmt::format("{}: {}", whole, error.message()), "");
  }
}

}  // namespace cairn::cli
