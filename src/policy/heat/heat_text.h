// SPDX-License-Identifier: Apache-2.0
// A heat map for people: in a terminal, and as JSON lines for share/cairn/heatmap.py.
//
//   /data/input.h5
//   1 GiB in 4096 segments of 256 KiB, epoch 2; a cell is 1 MiB
//        0 B |▅▅▅▅▅▅▅▅████▂▂▂▂▂▂····          |
//     32 MiB |                                |
//   blank: not accessed; · <= 0.0484 < ▁▂▃▄▅▆▇█ <= 12.4, each step twice the score
//
// Control characters in a file's name appear as "?".
//
// Thread safety: pure functions. Ownership: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "policy/heat/file_heat.h"

namespace cairn {

struct HeatPicture {
  std::string name;  // of the file, any bytes
  std::uint64_t file_bytes = 0;
  std::uint64_t segment_bytes = 0;
  std::uint32_t epochs = 0;
  // The natural logarithm of each segment's score; -infinity where nothing was accessed. Segments
  // behind the last one were not accessed either.
  std::vector<double> logarithms;
};

HeatPicture picture_of(const FileHeat& heat, std::string name, std::int64_t now_ns);

struct HeatTextSize {
  std::size_t cells_per_row = 64;
  std::size_t rows_max = 16;
};

// Lines, each with its end. A cell shows the hottest segment in it, by halves of the highest score.
// Requires: neither size is 0.
std::string heat_text(const HeatPicture& picture, const HeatTextSize& size = {});

// One object for the map (name, file_bytes, segment_bytes, epochs), then one for each segment that
// is not cold (segment, offset, bytes, score_log2), each on a line. The name's bytes that are no
// UTF-8 become U+FFFD.
std::string heat_json_lines(const HeatPicture& picture);

}  // namespace cairn
