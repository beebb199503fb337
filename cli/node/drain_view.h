// SPDX-License-Identifier: Apache-2.0
//
// Shows how data reaches the backing store: a bar on a terminal, a line every five seconds
// elsewhere.
//
// Thread safety: one thread. Ownership: nothing. The destructor leaves the terminal on a fresh
// line.
#pragma once

#include <cstdint>
#include <string>

#include "cli/node/control_client.h"

namespace cairn::cli {

// The content of one progress line of the control protocol.
struct DrainProgress {
  uint64_t remaining_bytes = 0;
  uint64_t remaining_files = 0;
  double rate_bytes_per_second = 0;
  double idle_seconds = 0;  // for so long nothing was stored
  std::string file;

  static DrainProgress from_json(const Json& progress);
};

// "[######----] 60 %  1.2 GiB in 14 files left, 110 MiB/s, 11 s  results/step7.h5", cut to
// `width` columns.
std::string drain_bar(const DrainProgress& progress, uint64_t total_bytes, unsigned width);

// "storing: 1.2 GiB in 14 files left, 110 MiB/s, results/step7.h5"
std::string drain_line(const DrainProgress& progress, const std::string& verb = "storing");

class DrainView {
 public:
  // `verb` begins the plain lines.
  explicit DrainView(std::string verb = "storing");
  ~DrainView();
  DrainView(const DrainView&) = delete;
  DrainView& operator=(const DrainView&) = delete;

  void update(const DrainProgress& progress);

  // Removes the bar so that other lines can be printed.
  void clear();

 private:
  const std::string verb_;
  const bool is_terminal_;
  bool bar_is_drawn_ = false;
  uint64_t total_bytes_ = 0;  // the most that was ever left
  double started_seconds_ = 0;
  double printed_seconds_ = 0;
};

}  // namespace cairn::cli
