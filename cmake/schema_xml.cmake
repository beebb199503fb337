# SPDX-License-Identifier: Apache-2.0
#
# lib/cairn/schema_xml.so: the reader of XML schemas, the only thing that links libxml2. src/policy/rules opens it when
# an XML schema is to be read, so that the command starts without libxml2 and what it needs
# (src/policy/rules/schema_xml.h).
# share/cairn/schema.xsd is built into it, and stands beside the build for editors.

set(schema_xsd ${CMAKE_SOURCE_DIR}/share/cairn/schema.xsd)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${schema_xsd})
file(READ ${schema_xsd} CAIRN_SCHEMA_XSD)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/schema_xsd.cc @ONLY CONTENT
"// Made by cmake/schema_xml.cmake from share/cairn/schema.xsd.
#include \"policy/rules/schema_xsd.h\"

namespace cairn {
const char kSchemaXsd[] = R\"XSD(@CAIRN_SCHEMA_XSD@)XSD\";
const std::size_t kSchemaXsdBytes = sizeof kSchemaXsd - 1;
}  // namespace cairn
")
configure_file(${schema_xsd} ${CMAKE_BINARY_DIR}/share/cairn/schema.xsd COPYONLY)

file(GLOB schema_xml_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/policy/rules/xml/*.cc)
add_library(cairn_schema_xml MODULE ${schema_xml_sources} ${CMAKE_BINARY_DIR}/generated/schema_xsd.cc)
target_link_libraries(cairn_schema_xml PRIVATE cairn_flags LibXml2::LibXml2)
set_target_properties(cairn_schema_xml PROPERTIES
  PREFIX "" OUTPUT_NAME schema_xml LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/cairn)
if(NOT CAIRN_SANITIZE)
  target_link_options(cairn_schema_xml PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed
    -Wl,--exclude-libs,ALL -Wl,-z,defs -Wl,-z,relro)
endif()
# A program that reads schemas needs it at run time.
add_dependencies(cairn_rules cairn_schema_xml)
