// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/arrays_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/size_text.h"
#include "cli/commands/picture.h"
#include "cli/node/json_fields.h"
#include "cli/run/array_text.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"

namespace cairn::cli {
namespace {

// HDF5's format specification, section II.A, has the signature at byte 0, or behind a user block of
// 512 bytes, or of twice as many, and so on.
bool is_hdf5(const std::string& path) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  constexpr off_t kUserBlockMax = off_t{1} << 30;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw Failure(fmt::format("{}: {}", path, std::strerror(errno)));
  bool is_found = false;
  for (off_t at = 0; at <= kUserBlockMax && !is_found; at = at == 0 ? 512 : 2 * at) {
    char bytes[kSignature.size()] = {};
    if (::pread(descriptor, bytes, sizeof bytes, at) != static_cast<ssize_t>(sizeof bytes)) break;
    is_found = std::string_view(bytes, sizeof bytes) == kSignature;
  }
  ::close(descriptor);
  return is_found;
}

std::string numbers_text(const Json& numbers) {
  std::string text;
  for (const Json& number : numbers)
    text += (text.empty() ? "" : " x ") +
            std::to_string(number.is_number_unsigned() ? number.get<uint64_t>() : 0);
  return text.empty() ? "?" : text;
}

std::string head_text(const Json& dataset) {
  std::string text = fmt::format(
      "{}: {} cells of {} B, {}", dataset_name(dataset), numbers_text(member(dataset, "shape")),
      unsigned_field(dataset, "cell_bytes"), printable(text_field(dataset, "layout")));
  if (!member(dataset, "file_chunk").empty())
    text += " " + numbers_text(member(dataset, "file_chunk"));
  const char* separator = ", ";
  for (const Json& filter : member(dataset, "filters")) {
    text += separator + printable(filter.is_string() ? filter.get<std::string>() : "?");
    separator = " + ";
  }
  return text + "\n";
}

bool has_cells(const Json& numbers) {
  for (const Json& number : numbers) {
    if (number.is_number_unsigned() && number.get<uint64_t>() != 0) return true;
  }
  return false;
}

std::string ghost_text(const Json& grid) {
  const Json& before = member(grid, "ghost_before");
  const Json& behind = member(grid, "ghost_behind");
  if (!has_cells(before) && !has_cells(behind)) return "";
  if (before == behind) return ", ghost zone " + numbers_text(before);
  return fmt::format(", ghost zone {} before and {} behind", numbers_text(before),
                     numbers_text(behind));
}

// `grid`: a dataset, or one of its earlier grids.
std::string shape_text(const Json& grid) {
  return numbers_text(member(grid, "chunk")) + ghost_text(grid);
}

std::string cached_text(const Json& grid) {
  const uint64_t chunks = unsigned_field(grid, "chunks");
  const uint64_t looked_at = unsigned_field(grid, "chunks_looked_at");
  const std::string of = looked_at == chunks ? std::to_string(chunks)
                                             : fmt::format("the first {} of {}", looked_at, chunks);
  return fmt::format("{} of {} chunks, {}", unsigned_field(grid, "cached_chunks"), of,
                     format_size(unsigned_field(grid, "cached_bytes")));
}

const Json& one_of(const Json& datasets) {
  const Json* found = nullptr;
  for (const Json& dataset : datasets) {
    if (!dataset.contains("cached")) continue;
    if (found != nullptr)
      throw Failure("--png draws one dataset, and there are several",
                    fmt::format("name one, such as --dataset {}", dataset_name(*found)));
    found = &dataset;
  }
  if (found == nullptr)
    throw Failure("there is nothing to draw: no chunks are known",
                  "it takes a few reads until they are");
  return *found;
}

}  // namespace

Json datasets_of(const std::string& path, const std::string& node, const std::string& dataset,
                 bool names_chunks) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0)
    throw Failure(fmt::format("{}: {}", path, std::strerror(errno)), "name an existing file");
  if (!S_ISREG(status.st_mode))
    throw Failure(fmt::format("{} is not a regular file", path), "name an HDF5 file");
  ControlClient client(select_node(node));
  const auto ask = [&](const std::string& name) {
    const Json reply = client.request({{"command", "arrays"},
                                       {"device", static_cast<uint64_t>(status.st_dev)},
                                       {"inode", static_cast<uint64_t>(status.st_ino)},
                                       {"dataset", name},
                                       {"chunks", names_chunks}});
    return member(reply, "datasets");
  };
  Json found = ask(dataset);
  if (!found.empty()) return found;
  // This command does not see what programs have not stored yet, so the node answers first.
  if (!is_hdf5(path) && (dataset.empty() || ask("").empty()))
    throw Failure(fmt::format("{} is no HDF5 file", path),
                  "`cairn explain` says of any file where its bytes are");
  throw Failure(
      dataset.empty()
          ? fmt::format("{}: no program has read a dataset of it on this node", path)
          : fmt::format("{}: no program has read {} on this node", path, printable(dataset)),
      "programs that read it with HDF5 1.14 or later under `cairn run` tell of it "
      "(docs/arrays.md)");
}

std::string dataset_text(const Json& dataset) {
  std::string text = head_text(dataset);
  if (const std::string why = text_field(dataset, "not_served"); !why.empty())
    text += fmt::format("  left to HDF5: {}\n", printable(why));
  if (unsigned_field(dataset, "chunks") != 0) {
    text += fmt::format("  chunks    {}\n", shape_text(dataset));
    text += fmt::format("  cached    {}\n", cached_text(dataset));
    for (const Json& grid : member(dataset, "earlier"))
      text += fmt::format("  earlier   {}: {}\n", shape_text(grid), cached_text(grid));
    if (const uint64_t ahead = unsigned_field(dataset, "unpacked_ahead"); ahead != 0)
      text += fmt::format("  ahead     {} chunks unpacked before they were read\n", ahead);
  } else if (text_field(dataset, "not_served").empty()) {
    text += "  chunks    not known yet\n";
  }
  return text + fmt::format("  reads     {}\n", reads_text(dataset));
}

int command_arrays(const Arguments& arguments) {
  CLI::App app("Shows which datasets of an HDF5 file programs read, and what of them is cached.",
               "cairn arrays");
  std::string path;
  std::string node;
  std::string dataset;
  std::string picture;
  bool json = false;
  app.add_option("path", path, "The file")->type_name("PATH")->required();
  add_text(app, "--node", node, kNodeHelp, "NAME");
  add_text(app, "--dataset", dataset, "That dataset alone, such as /group/density", "NAME");
  add_text(app, "--png", picture,
           "Draw its chunks and which are cached to this file as well (python3 with matplotlib)",
           "PICTURE");
  app.add_flag("--json", json, "As JSON; documented in docs/reference.md");
  app.footer("Example:\n  cairn arrays --node job fields.h5 --dataset /density --png density.png");
  parse(app, arguments);
  const Json datasets = datasets_of(path, node, dataset, json || !picture.empty());
  if (json) {
    print(datasets.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    for (const Json& each : datasets) print(dataset_text(each));
  }
  if (!picture.empty())
    draw_picture("arrays.py",
                 one_of(datasets).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n",
                 absolute_path(picture));
  return kExitOk;
}

}  // namespace cairn::cli
