// SPDX-License-Identifier: Apache-2.0
//
// Words for what the node says of datasets.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cairn::cli {

// The dataset's name as one may print it.
std::string dataset_name(const nlohmann::json& dataset);

// "90 from chunks (90 %), 10 left to HDF5: 7 type conversion, 3 not a plain box".
std::string reads_text(const nlohmann::json& dataset);

// What the report of a run says of the datasets that it has read: those that may be served one by
// one, the others together by the reason why they are not. `arrays`: "arrays" of the report.
std::vector<std::string> array_lines(const nlohmann::json& arrays);

}  // namespace cairn::cli
