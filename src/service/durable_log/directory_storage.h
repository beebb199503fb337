// SPDX-License-Identifier: Apache-2.0
// The log's files as files of a real folder.
//
// Thread safety: as LogStorage.
#pragma once

#include <memory>
#include <string>

#include "service/durable_log/log_storage.h"

namespace cairn::durable {

// The folder of the durable log inside a tier's directory.
inline constexpr const char* kLogFolder = "cairn-durable";

// Where the log of the tier at `tier_directory` lies. A path that ends in kLogFolder is taken as
// the folder itself.
std::string log_folder_of(const std::string& tier_directory);

enum class FolderWanted : std::uint8_t { kExisting, kMade };

// Opens the folder of the tier's log; kMade: makes it, 0700, where there is none. Errors: kDenied
// when another user owns the folder or may write to it, or when it is a symbolic link; kNotFound.
Result<std::unique_ptr<LogStorage>> open_directory_storage(const std::string& tier_directory,
                                                           FolderWanted wanted);

}  // namespace cairn::durable
