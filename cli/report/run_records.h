// SPDX-License-Identifier: Apache-2.0
//
// The records of the last runs that were sampled, in `runs` of the state directory
// (base/state_directory.h): one JSON document of the schema cairn-run-1 for each.
//
// While a run is under way, its node writes its record. Names begin with the time of the run, so
// that they sort by age; the oldest go when there are too many, or too many bytes.
//
// Thread safety: reads and writes files; several commands may do so at once. Errors: throw Failure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cairn::cli {

class RunRecords {
 public:
  static constexpr size_t kRecordsMax = 32;
  static constexpr uint64_t kBytesMax = uint64_t{64} << 20;
  static constexpr uint64_t kRecordBytesMax = uint64_t{32} << 20;

  // Errors: there is no state directory.
  RunRecords();
  explicit RunRecords(std::string directory) : directory_(std::move(directory)) {}

  // The file of a run that begins now. Asks no file system.
  std::string path_of(const std::string& run) const;
  // Makes room for one more; the directory is there afterwards.
  void make_room() const;
  // Removes the oldest beyond the limits.
  void prune() const;
  // The names, without ".json", the newest first.
  std::vector<std::string> names() const;
  // The record of that name, or of the newest run of that id; empty: the newest of all.
  // Errors: there is none; it is not a record.
  nlohmann::json load(const std::string& run) const;
  const std::string& directory() const { return directory_; }

 private:
  std::string find(const std::string& run) const;

  std::string directory_;
};

// Makes room for the record and writes it, in a process of its own. Returns: false where the file
// system has not answered in time; that process is killed. What fails at once stays unsaid.
bool keep_in_time(const std::string& path, const nlohmann::json& record);

// Errors: throws Failure naming the file: it cannot be read, is too large, or is no record.
nlohmann::json read_record(const std::string& path);

}  // namespace cairn::cli
