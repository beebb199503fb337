// SPDX-License-Identifier: Apache-2.0
//
// Text and numbers as a page may have them: whatever a file is called, the page stays well-formed.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::cli {

// For the text and the attributes of HTML and XML. Control characters, which XML forbids, become
// U+FFFD.
std::string escaped(std::string_view text);

// <data value="N">WORDS</data>: what people read, and the number that it stands for.
std::string data_cell(double value, std::string_view words);
std::string size_cell(uint64_t bytes);

// "12.5 %"; "-" of nothing.
std::string percent(double part, double whole);

// A number without needless digits: "0.25", "1200".
std::string number_text(double value);

}  // namespace cairn::cli
