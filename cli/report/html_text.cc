// SPDX-License-Identifier: Apache-2.0
#include "cli/report/html_text.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/size_text.h"

namespace cairn::cli {

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    const auto letter = static_cast<unsigned char>(text[at]);
    // U+FFFE and U+FFFF are no characters of XML either.
    const std::string_view three = text.substr(at, 3);
    if (three == "\xef\xbf\xbe" || three == "\xef\xbf\xbf") {
      out += "\xef\xbf\xbd";
      at += 2;
    } else if (letter == '&') {
      out += "&amp;";
    } else if (letter == '<') {
      out += "&lt;";
    } else if (letter == '>') {
      out += "&gt;";
    } else if (letter == '"') {
      out += "&quot;";
    } else if (letter == '\'') {
      out += "&#39;";
    } else if (letter < 0x20 || letter == 0x7f) {
      out += "\xef\xbf\xbd";
    } else {
      out += static_cast<char>(letter);
    }
  }
  return out;
}

std::string number_text(double value) {
  std::string text = fmt::format("{:.3f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  CAIRN_CHECK(!text.empty());
  return text;
}

std::string data_cell(double value, std::string_view words) {
  return fmt::format("<data value=\"{}\">{}</data>", number_text(value), escaped(words));
}

std::string size_cell(uint64_t bytes) {
  return fmt::format("<data value=\"{}\">{}</data>", bytes, format_size(bytes));
}

std::string percent(double part, double whole) {
  return whole <= 0 ? "-" : fmt::format("{:.1f} %", 100 * part / whole);
}

}  // namespace cairn::cli
