// SPDX-License-Identifier: Apache-2.0
// What a service leaves to its successor as text (service/control/kept_json.h): any bytes, and any
// values in the places where these are read. Readers return values or throw the JSON library's
// exceptions, which their caller turns into a message.
#include <string>

#include "base/check.h"
#include "service/control/kept_json.h"

namespace {

using cairn::node::Json;

template <typename Read>
void tried(Read&& read) {
  try {
    (void)read();
  } catch (const Json::exception&) {
  }
}

void read_all(const Json& value) {
  tried([&] { return cairn::node::run_from_json(value); });
  tried([&] { return cairn::node::accounts_from_json(value); });
  tried([&] { return cairn::node::rules_from_json(value); });
  tried([&] { return cairn::node::scratch_from_json(value); });
  tried([&] { return cairn::node::orders_from_json(value); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Json packed = cairn::node::unpacked(text);
  if (!packed.is_discarded()) read_all(packed);
  // The same as JSON, which mutations keep whole more often than CBOR.
  const Json plain = Json::parse(text, nullptr, false);
  if (!plain.is_discarded()) read_all(plain);
  return 0;
}
