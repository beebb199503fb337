// SPDX-License-Identifier: Apache-2.0
// lib/cairn/schema_xml.so: an XML schema read and validated by libxml2; see
// policy/rules/schema_xml.h.
//
// A schema may come from somebody else, so nothing in it makes the reader open a file or a socket:
// a DOCTYPE (entities, external subsets) ends the reading, and what xsi:schemaLocation names is not
// loaded.
#include "policy/rules/schema_xml.h"

#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/tree.h>
#include <libxml/xmlerror.h>
#include <libxml/xmlschemas.h>

#include <cstdio>
#include <cstring>

#include "policy/rules/schema_tree.h"
#include "policy/rules/schema_xsd.h"

namespace cairn {
namespace {

constexpr const char* kInstanceNamespace = "http://www.w3.org/2001/XMLSchema-instance";
constexpr std::size_t kMessageBytesMax = 400;
constexpr std::size_t kNameBytesMax = 120;

#if LIBXML_VERSION >= 21200
using XmlError = const xmlError*;
#else
using XmlError = xmlErrorPtr;
#endif

const char* as_text(const xmlChar* text) { return reinterpret_cast<const char*>(text); }

struct Reading {
  const CairnXmlSink* sink;
  unsigned problems = 0;
  bool refused = false;

  void problem(unsigned line, const char* text) {
    if (problems++ < kSchemaProblemsMax) sink->problem(sink->context, line, text);
  }
};

// libxml2's messages end with a line break and may quote long pieces of the text.
void on_error(void* context, XmlError error) {
  if (error->level < XML_ERR_ERROR || error->message == nullptr) return;
  char message[kMessageBytesMax];
  std::size_t length = strnlen(error->message, sizeof message - 1);
  std::memcpy(message, error->message, length);
  while (length > 0 && (message[length - 1] == '\n' || message[length - 1] == ' ')) --length;
  message[length] = '\0';
  for (char* letter = message; *letter != '\0'; ++letter) {
    if (*letter == '\n') *letter = ' ';
  }
  const unsigned line = error->line > 0 ? static_cast<unsigned>(error->line) : 1;
  static_cast<Reading*>(context)->problem(line, message);
}

// The hook of libxml2 at the head of a DOCTYPE, before any declaration in it is read.
void refuse_document_type(void* context, const xmlChar* /*name*/, const xmlChar* /*external_id*/,
                          const xmlChar* /*system_id*/) {
  auto* parser = static_cast<xmlParserCtxtPtr>(context);
  auto* reading = static_cast<Reading*>(parser->_private);
  const unsigned line = parser->input != nullptr ? static_cast<unsigned>(parser->input->line) : 1;
  reading->problem(line, "a document type (DOCTYPE) is not allowed in a schema; remove it");
  reading->refused = true;
  xmlStopParser(parser);
}

xmlParserInputPtr refuse_external_file(const char* /*url*/, const char* /*id*/,
                                       xmlParserCtxtPtr /*parser*/) {
  return nullptr;
}

// While it lives, libxml2 tells its errors to the reading and opens nothing.
class Confined {
 public:
  explicit Confined(Reading* reading)
      : loader_(xmlGetExternalEntityLoader()),
        error_(xmlStructuredError),
        error_context_(xmlStructuredErrorContext) {
    xmlSetExternalEntityLoader(refuse_external_file);
    xmlSetStructuredErrorFunc(reading, on_error);
  }
  ~Confined() {
    xmlSetStructuredErrorFunc(error_context_, error_);
    xmlSetExternalEntityLoader(loader_);
  }
  Confined(const Confined&) = delete;
  Confined& operator=(const Confined&) = delete;

 private:
  xmlExternalEntityLoader loader_;
  xmlStructuredErrorFunc error_;
  void* error_context_;
};

// Returns: null when the text is not well-formed; at least one problem was told then.
xmlDocPtr parse(const char* text, std::size_t size, Reading* reading) {
  xmlParserCtxtPtr parser = xmlNewParserCtxt();
  if (parser == nullptr) {
    reading->problem(1, "no memory to read it");
    return nullptr;
  }
  parser->_private = reading;
  parser->sax->internalSubset = refuse_document_type;
  // Whatever the XML declaration says: the caller saw that it is UTF-8.
  xmlDocPtr document = xmlCtxtReadMemory(parser, text, static_cast<int>(size), nullptr, "UTF-8",
                                         XML_PARSE_NONET | XML_PARSE_NOCDATA);
  xmlFreeParserCtxt(parser);
  if (document != nullptr && (reading->refused || reading->problems > 0)) {
    xmlFreeDoc(document);
    document = nullptr;
  }
  if (document == nullptr && reading->problems == 0) reading->problem(1, "not well-formed XML");
  return document;
}

// Compiled once: it is constant, and validation does not change it.
xmlSchemaPtr compiled_xsd() {
  static xmlSchemaPtr compiled = [] {
    xmlSchemaParserCtxtPtr parser =
        xmlSchemaNewMemParserCtxt(kSchemaXsd, static_cast<int>(kSchemaXsdBytes));
    xmlSchemaPtr schema = parser != nullptr ? xmlSchemaParse(parser) : nullptr;
    xmlSchemaFreeParserCtxt(parser);
    return schema;
  }();
  return compiled;
}

void validate(xmlDocPtr document, Reading* reading) {
  xmlSchemaPtr schema = compiled_xsd();
  xmlSchemaValidCtxtPtr validator = schema != nullptr ? xmlSchemaNewValidCtxt(schema) : nullptr;
  if (validator == nullptr) {
    reading->problem(1, "schema.xsd cannot be used by this libxml2");
    return;
  }
  xmlSchemaSetValidStructuredErrors(validator, on_error, reading);
  const unsigned before = reading->problems;
  const int outcome = xmlSchemaValidateDoc(validator, document);
  if (outcome != 0 && reading->problems == before) reading->problem(1, "schema.xsd forbids it");
  xmlSchemaFreeValidCtxt(validator);
}

// "prefix:name", as the text has it.
void begin_entry(const Reading& reading, const xmlNs* space, const xmlChar* name, unsigned line,
                 bool is_attribute) {
  char full[kNameBytesMax];
  const bool has_prefix = space != nullptr && space->prefix != nullptr;
  std::snprintf(full, sizeof full, "%s%s%s", has_prefix ? as_text(space->prefix) : "",
                has_prefix ? ":" : "", as_text(name));
  reading.sink->begin(reading.sink->context, full, line, is_attribute);
}

void tell_text(const Reading& reading, const xmlNode* nodes) {
  for (const xmlNode* node = nodes; node != nullptr; node = node->next) {
    const bool is_text = node->type == XML_TEXT_NODE || node->type == XML_CDATA_SECTION_NODE;
    if (!is_text || node->content == nullptr) continue;
    const char* text = as_text(node->content);
    reading.sink->text(reading.sink->context, text, std::strlen(text));
  }
}

void tell_attributes(const Reading& reading, const xmlNode* element, unsigned line) {
  for (const xmlAttr* attribute = element->properties; attribute != nullptr;
       attribute = attribute->next) {
    // What editors put there to find schema.xsd.
    const bool for_editors = attribute->ns != nullptr && attribute->ns->href != nullptr &&
                             std::strcmp(as_text(attribute->ns->href), kInstanceNamespace) == 0;
    if (for_editors) continue;
    begin_entry(reading, attribute->ns, attribute->name, line, true);
    tell_text(reading, attribute->children);
    reading.sink->end(reading.sink->context);
  }
}

void tell_element(Reading* reading, xmlNode* element, unsigned depth) {
  const long where = xmlGetLineNo(element);
  const unsigned line = where > 0 ? static_cast<unsigned>(where) : 1;
  if (depth > kSchemaDepthMax) {
    reading->problem(line, "elements are nested too deeply");
    return;
  }
  begin_entry(*reading, element->ns, element->name, line, false);
  tell_attributes(*reading, element, line);
  tell_text(*reading, element->children);
  for (xmlNode* child = element->children; child != nullptr; child = child->next) {
    if (child->type == XML_ELEMENT_NODE) tell_element(reading, child, depth + 1);
  }
  reading->sink->end(reading->sink->context);
}

}  // namespace
}  // namespace cairn

extern "C" __attribute__((visibility("default"))) bool cairn_read_schema_xml(
    const char* text, std::size_t size, const CairnXmlSink* sink) {
  cairn::Reading reading{sink};
  const cairn::Confined confined(&reading);
  xmlDocPtr document = cairn::parse(text, size, &reading);
  if (document == nullptr) return false;
  cairn::tell_element(&reading, xmlDocGetRootElement(document), 1);
  cairn::validate(document, &reading);
  xmlFreeDoc(document);
  return true;
}
