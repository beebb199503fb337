// SPDX-License-Identifier: Apache-2.0
// share/cairn/schema.xsd as text, put into lib/cairn/schema_xml.so by the build
// (cmake/schema_xml.cmake): a schema is validated by what the reader was built with, wherever the
// file for editors went.
//
// Thread safety: constant. Ownership: static.
#pragma once

#include <cstddef>

namespace cairn {

extern const char kSchemaXsd[];
extern const std::size_t kSchemaXsdBytes;

}  // namespace cairn
