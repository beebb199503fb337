// SPDX-License-Identifier: Apache-2.0
//
// The commands that talk to a running node, or start and stop a named one.
//
// Thread safety: one per process. Ownership: nothing is kept. Each returns the exit status of the
// command and throws Failure when it cannot be carried out.
#pragma once

#include <optional>
#include <string>

#include "cli/configuration/settings.h"
#include "cli/node/control_client.h"

namespace cairn::cli {

// `cairn up`: starts a named node and returns when it is ready.
int start_node(const CommandLineSettings& settings);

struct StopOptions {
  std::string node;
  bool discard = false;  // give up data that is not stored
};
// `cairn down`: stores everything and ends the node; the node stays when something cannot be
// stored.
int stop_node(const StopOptions& options);

struct DrainOptions {
  std::string node;
  std::optional<double> timeout_seconds;
};
// `cairn drain`: stores everything now and waits for it.
int drain_node(const DrainOptions& options);

struct StatusOptions {
  std::string node;
  bool json = false;
};
// `cairn status`.
int show_status(const StatusOptions& options);

// The human form of a status object of the control protocol.
std::string status_text(const Json& status);

struct ExplainOptions {
  std::string node;
  std::string path;
  std::string dataset;  // of an HDF5 file; empty: the file itself
  bool json = false;
};
// `cairn explain`: what of a file is where, and why.
int explain_file(const ExplainOptions& options);

// The human form of the reply to "explain".
std::string explain_text(const std::string& path, const Json& reply);

}  // namespace cairn::cli
