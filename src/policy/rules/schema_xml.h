// SPDX-License-Identifier: Apache-2.0
// The boundary between the command and the shared object that knows XML (lib/cairn/schema_xml.so).
//
// libxml2 brings ICU, lzma and zlib with it, which cost the dynamic linker half a millisecond;
// `cairn run` is started by the hundred and hardly ever reads an XML schema. So only the shared
// object links libxml2, and it is opened when an XML schema is to be read.
//
// No C++ object and no exception crosses: both sides may have a C++ runtime of their own.
//
// Thread safety: one call at a time (libxml2's loader of external files is a setting of the whole
// process). Ownership: the caller's text is only read; what the callbacks get lives until they
// return.
#pragma once

#include <cstddef>

extern "C" {

// Receives what the reader finds; none of the functions may throw.
struct CairnXmlSink {
  void* context;
  // An element or attribute begins; the next text and end are of it.
  void (*begin)(void* context, const char* name, unsigned line, bool is_attribute);
  void (*text)(void* context, const char* text, std::size_t size);
  void (*end)(void* context);
  // Not well-formed, or against schema.xsd.
  void (*problem)(void* context, unsigned line, const char* text);
};

// Returns: true when the text is well-formed; then the whole tree was told, and what schema.xsd
// objects to. Otherwise problems alone, at least one.
using CairnReadSchemaXml = bool (*)(const char* text, std::size_t size, const CairnXmlSink* sink);

}  // extern "C"

namespace cairn {
inline constexpr const char* kReadSchemaXmlName = "cairn_read_schema_xml";
}  // namespace cairn
