// SPDX-License-Identifier: Apache-2.0
#include "service/trace/csv_trace.h"

#include <array>
#include <string>
#include <utility>

namespace cairn {
namespace {

constexpr std::size_t kCsvFields = 6;

// Returns: nothing unless there are exactly so many fields.
std::optional<std::array<std::string_view, kCsvFields>> split_fields(std::string_view line) {
  std::array<std::string_view, kCsvFields> fields;
  for (std::size_t index = 0; index < kCsvFields; ++index) {
    const std::size_t comma = line.find(',');
    const bool is_last = index + 1 == kCsvFields;
    if (is_last != (comma == line.npos)) return std::nullopt;
    fields[index] = line.substr(0, comma);
    if (!is_last) line.remove_prefix(comma + 1);
  }
  return fields;
}

}  // namespace

Result<std::unique_ptr<CsvTrace>> CsvTrace::open(std::unique_ptr<TextInput> input) {
  std::string_view heading;
  if (!input->next_line(&heading) || heading != kCsvHeading) {
    CAIRN_RETURN_IF_ERROR(input->status());
    return Status(StatusCode::kInvalid,
                  "trace: " + input->place() + "the heading is not " + std::string(kCsvHeading));
  }
  return std::unique_ptr<CsvTrace>(new CsvTrace(std::move(input)));
}

bool CsvTrace::next(TraceEvent* event) {
  if (!status_) return false;
  if (access_.length == 0) {
    std::string_view line;
    do {
      if (!input_->next_line(&line)) return false;
    } while (line.empty());
    if (!read_access(line)) {
      status_ =
          Status(StatusCode::kInvalid,
                 "trace: " + input_->place() + "this is not a line of " + std::string(kCsvHeading));
      return false;
    }
  }
  *event = access_.take_part();
  return true;
}

bool CsvTrace::read_access(std::string_view line) {
  const auto fields = split_fields(line);
  if (!fields) return false;
  const auto time_ns = parse_seconds((*fields)[0]);
  const auto rank = parse_signed((*fields)[1]);
  const auto file = parse_signed((*fields)[2]);
  const std::string_view operation = (*fields)[3];
  const auto offset = parse_whole((*fields)[4]);
  const auto length = parse_whole((*fields)[5]);
  if (!time_ns || !rank || !file || !offset || !length) return false;
  if (operation != "0" && operation != "1") return false;
  TextAccess access{.time_ns = *time_ns, .offset = *offset, .length = *length};
  if (!access.is_possible()) return false;
  access.is_write = operation == "1";
  access.file = names_.files.number_of("file " + std::to_string(*file));
  access.process = names_.processes.number_of("rank " + std::to_string(*rank));
  access_ = access;
  return true;
}

}  // namespace cairn
