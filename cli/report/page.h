// SPDX-License-Identifier: Apache-2.0
//
// The page of a run: one HTML document that needs nothing else and is well-formed XML, too.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace cairn::cli {

// In the head of each page: by it an older page of ours is known.
inline constexpr std::string_view kPageMark = "<meta name=\"generator\" content=\"cairn report\"/>";

// `run`: a document of the schema cairn-run-1 (docs/reference.md). What it lacks, the page lacks.
std::string report_page(const nlohmann::json& run);

}  // namespace cairn::cli
