// SPDX-License-Identifier: Apache-2.0
// Whether a YAML text is one document. YAML::Load() drops what follows the first one in silence,
// and YAML::LoadAll() never ends on a text that begins with a comma (yaml-cpp 0.7): a document of
// nothing, again and again.
//
// Thread safety: any thread.
#pragma once

#include <optional>
#include <string>

namespace cairn {

// Where the second document begins, if there is one. Throws YAML::Exception on a text that is none.
std::optional<unsigned> line_of_second_document(const std::string& text);

}  // namespace cairn
