// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/class_defaults.h"

namespace cairn::profiler {

ClassFigures class_defaults(DeviceClass device_class) {
  switch (device_class) {
    case DeviceClass::kMemory:
      return {8e9, 6e9, 100e-9, 100e-9};  // one core copying
    case DeviceClass::kNvme:
      return {2e9, 1e9, 90e-6, 30e-6};  // writes end in the device's buffer
    case DeviceClass::kSsd:
      return {500e6, 400e6, 120e-6, 80e-6};  // SATA
    case DeviceClass::kHdd:
      return {150e6, 140e6, 8e-3, 8e-3};  // 7200 rpm: half a turn and a seek
    case DeviceClass::kNetwork:
      return {500e6, 300e6, 1e-3, 1e-3};  // one client's share of a parallel file system
    case DeviceClass::kUnknown:
      break;
  }
  // The slowest of the local ones: nothing is then preferred to it by mistake.
  return class_defaults(DeviceClass::kHdd);
}

}  // namespace cairn::profiler
