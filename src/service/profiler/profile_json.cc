// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/profile_json.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace cairn::profiler {
namespace {

using nlohmann::json;

constexpr size_t kTextBytesMax = 4096;
constexpr size_t kCellsMax = 256;
// Wider than anything that stores bytes: a petabyte per second, a microsecond's millionth.
constexpr double kBandwidthMin = 1;
constexpr double kBandwidthMax = 1e15;
constexpr double kLatencyMin = 1e-12;
constexpr double kLatencyMax = 1e5;
constexpr int64_t kLatestDate = 253402300799;  // the last second of the year 9999

// Takes fields out of an object and remembers the first that is not as it should be.
class FieldReader {
 public:
  FieldReader(const json& object, std::string* problem) : object_(object), problem_(problem) {
    if (!object.is_object()) complain("is not an object");
  }

  const json* field(const char* key) {
    if (!problem_->empty()) return nullptr;
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    complain(std::string(key) + " is missing");
    return nullptr;
  }

  std::string text(const char* key) {
    const json* value = field(key);
    if (value == nullptr) return {};
    if (value->is_string() && value->get_ref<const std::string&>().size() <= kTextBytesMax) {
      return value->get<std::string>();
    }
    complain(std::string(key) + " is not a text of at most 4096 bytes");
    return {};
  }

  uint64_t count(const char* key, uint64_t maximum) {
    const json* value = field(key);
    if (value == nullptr) return 0;
    if (value->is_number_unsigned() && value->get<uint64_t>() <= maximum) {
      return value->get<uint64_t>();
    }
    complain(std::string(key) + " is not a number from 0 to " + std::to_string(maximum));
    return 0;
  }

  double number(const char* key, double minimum, double maximum) {
    const json* value = field(key);
    if (value == nullptr) return 0;
    const double given = value->is_number() ? value->get<double>() : NAN;
    if (std::isfinite(given) && given >= minimum && given <= maximum) return given;
    complain(std::string(key) + " is not a possible value");
    return 0;
  }

  bool truth(const char* key) {
    const json* value = field(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) complain(std::string(key) + " is neither true nor false");
    return value->is_boolean() && value->get<bool>();
  }

  Spread spread(const char* key, double minimum, double maximum) {
    const json* value = field(key);
    if (value == nullptr) return {};
    FieldReader inner(*value, problem_);
    const Spread spread = {
        inner.number("value", minimum, maximum), inner.number("minimum", minimum, maximum),
        inner.number("median", minimum, maximum), inner.number("maximum", minimum, maximum)};
    if (problem_->empty() && spread.minimum > spread.maximum) {
      complain(std::string(key) + " has a minimum above its maximum");
    }
    return spread;
  }

  // 0 where it is not there: figures of before it was measured.
  double latency_or_none(const char* key) {
    return object_.is_object() && object_.contains(key) ? number(key, 0, kLatencyMax) : 0;
  }

  Spread bandwidth(const char* key) { return spread(key, kBandwidthMin, kBandwidthMax); }
  Spread latency(const char* key) { return spread(key, kLatencyMin, kLatencyMax); }

  void complain(const std::string& what) {
    if (problem_->empty()) *problem_ = what;
  }

 private:
  const json& object_;
  std::string* problem_;
};

DeviceIdentity read_identity(const json& object, std::string* problem) {
  FieldReader reader(object, problem);
  DeviceIdentity identity;
  identity.host = reader.text("host");
  const auto device_class = class_named(reader.text("class"));
  if (!device_class) reader.complain("class is not known");
  identity.device_class = device_class.value_or(DeviceClass::kUnknown);
  identity.name = reader.text("name");
  identity.number = reader.text("number");
  identity.st_dev = reader.count("st_dev", UINT64_MAX);
  identity.model = reader.text("model");
  identity.serial = reader.text("serial");
  identity.file_system = reader.text("file_system");
  identity.file_system_uuid = reader.text("file_system_uuid");
  identity.size_bytes = reader.count("size_bytes", UINT64_MAX);
  return identity;
}

CellFigures read_cell(const json& object, std::string* problem) {
  FieldReader reader(object, problem);
  CellFigures cell;
  const std::string direction = reader.text("direction");
  if (direction != "read" && direction != "write") {
    reader.complain("direction is neither read nor write");
  }
  cell.direction = direction == "read" ? Direction::kRead : Direction::kWrite;
  cell.request_bytes = static_cast<uint32_t>(reader.count("request_bytes", UINT32_MAX));
  cell.depth = static_cast<unsigned>(reader.count("depth", 4096));
  cell.requests = reader.count("requests", UINT64_MAX);
  cell.bandwidth = reader.bandwidth("bandwidth");
  cell.latency = reader.latency("latency");
  return cell;
}

DeviceFigures read_figures(const json& object, std::string* problem) {
  FieldReader reader(object, problem);
  DeviceFigures figures;
  figures.read_bandwidth = reader.bandwidth("read_bandwidth");
  figures.write_bandwidth = reader.bandwidth("write_bandwidth");
  figures.read_latency = reader.latency("read_latency");
  figures.write_latency = reader.latency("write_latency");
  figures.read_idle_latency = reader.latency_or_none("read_idle_latency");
  figures.write_idle_latency = reader.latency_or_none("write_idle_latency");
  figures.sync_latency = reader.latency_or_none("sync_latency");
  figures.direct = reader.truth("direct");
  figures.seconds = reader.number("seconds", 0, kLatencyMax);
  const json* cells = reader.field("cells");
  if (cells == nullptr) return figures;
  if (!cells->is_array() || cells->size() > kCellsMax) {
    reader.complain("cells is not a list of at most 256");
    return figures;
  }
  for (const json& cell : *cells) figures.cells.push_back(read_cell(cell, problem));
  return figures;
}

}  // namespace

json spread_json(const Spread& spread) {
  return {{"value", spread.value},
          {"minimum", spread.minimum},
          {"median", spread.median},
          {"maximum", spread.maximum}};
}

json identity_json(const DeviceIdentity& identity) {
  return {{"host", identity.host},
          {"class", class_name(identity.device_class)},
          {"name", identity.name},
          {"number", identity.number},
          {"st_dev", identity.st_dev},
          {"model", identity.model},
          {"serial", identity.serial},
          {"file_system", identity.file_system},
          {"file_system_uuid", identity.file_system_uuid},
          {"size_bytes", identity.size_bytes}};
}

json figures_json(const DeviceFigures& figures) {
  json cells = json::array();
  for (const CellFigures& cell : figures.cells) {
    cells.push_back({{"direction", cell.direction == Direction::kRead ? "read" : "write"},
                     {"request_bytes", cell.request_bytes},
                     {"depth", cell.depth},
                     {"requests", cell.requests},
                     {"bandwidth", spread_json(cell.bandwidth)},
                     {"latency", spread_json(cell.latency)}});
  }
  return {{"read_bandwidth", spread_json(figures.read_bandwidth)},
          {"write_bandwidth", spread_json(figures.write_bandwidth)},
          {"read_latency", spread_json(figures.read_latency)},
          {"write_latency", spread_json(figures.write_latency)},
          {"read_idle_latency", figures.read_idle_latency},
          {"write_idle_latency", figures.write_idle_latency},
          {"sync_latency", figures.sync_latency},
          {"direct", figures.direct},
          {"seconds", figures.seconds},
          {"cells", cells}};
}

json profile_json(const DeviceProfile& profile) {
  return {{"device", identity_json(profile.identity)},
          {"directory", profile.directory},
          {"measured_at", static_cast<uint64_t>(std::max<int64_t>(profile.measured_at, 0))},
          {"date", date_text(profile.measured_at)},
          {"figures", figures_json(profile.figures)}};
}

Result<DeviceIdentity> identity_of_json(const json& object) {
  std::string problem;
  DeviceIdentity identity = read_identity(object, &problem);
  if (!problem.empty()) return Status(StatusCode::kInvalid, "device: " + problem);
  return identity;
}

Result<DeviceProfile> profile_of_json(const json& object) {
  std::string problem;
  DeviceProfile profile;
  FieldReader reader(object, &problem);
  if (const json* device = reader.field("device")) {
    profile.identity = read_identity(*device, &problem);
  }
  profile.directory = reader.text("directory");
  profile.measured_at =
      static_cast<int64_t>(reader.count("measured_at", static_cast<uint64_t>(kLatestDate)));
  if (const json* figures = reader.field("figures")) {
    profile.figures = read_figures(*figures, &problem);
  }
  if (!problem.empty()) return Status(StatusCode::kInvalid, problem);
  return profile;
}

}  // namespace cairn::profiler
