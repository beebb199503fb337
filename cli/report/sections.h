// SPDX-License-Identifier: Apache-2.0
//
// The sections of the page below the verdict. Each is empty where there is nothing to show.
//
// Thread safety: pure functions. `run`: a document of the schema cairn-run-1.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace cairn::cli {

// What would make the run faster, as far as its own record tells.
std::string advice_section(const nlohmann::json& run);
// Reads, writes, flushes, dirty data and hits over time.
std::string traffic_section(const nlohmann::json& run);
// Each predictor, with what it fetched ahead, what of that was used, and what was in vain.
std::string fetch_section(const nlohmann::json& run);
// The blocks that left their tiers, and the experts that the learner of eviction followed.
std::string eviction_section(const nlohmann::json& run);

std::string file_section(const nlohmann::json& run);
std::string heat_section(const nlohmann::json& run);
std::string process_section(const nlohmann::json& run);
std::string durability_section(const nlohmann::json& run);
std::string error_section(const nlohmann::json& run);

// <section> with its heading.
std::string section(const char* id, const char* heading, const std::string& body);
// A bar for the part of a whole, for people who see it; the number stands beside it.
std::string bar(double part, double whole, int colour);

}  // namespace cairn::cli
