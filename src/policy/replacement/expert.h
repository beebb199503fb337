// SPDX-License-Identifier: Apache-2.0
// An expert of replacement: the directory of a cache without the cache. It sees every reference and
// decides what a cache of its capacity would hold. The references that it would have missed are its
// loss, by which experts are compared (policy/replacement/ws_plus.h).
//
// An expert knows pages by number only: no bytes, no clock but the references themselves, no I/O.
// To add one, write `<name>.h` beside this header and put it into the table in
// policy/replacement/experts.h; the conformance suite (expert_test.cc) then runs against it.
//
// Thread safety: none; one thread per expert. Ownership: its own memory, in proportion to the pages
// that it holds or remembers and to the highest page number it has seen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/ids.h"

namespace cairn {

// A page, numbered by the caller: small numbers, for they are indices. A number may be given to
// another page as soon as nobody remembers it.
enum class PageId : std::uint32_t {};
inline constexpr PageId kNoPage{UINT32_MAX};
constexpr std::uint32_t raw(PageId page) { return static_cast<std::uint32_t>(page); }

class Expert {
 public:
  // Requires: capacity > 0.
  explicit Expert(std::uint32_t capacity) : capacity_(capacity) { CAIRN_CHECK(capacity > 0); }
  virtual ~Expert() = default;
  Expert(const Expert&) = delete;
  Expert& operator=(const Expert&) = delete;

  virtual const char* name() const = 0;
  // The expert whose decisions it takes at the moment: itself, or one of several that it compares.
  virtual const char* followed() const { return name(); }
  // A reference to the page, which the expert holds from now on if it thinks so; evicted() are the
  // pages that left for it. Returns: whether it was held before.
  virtual bool reference(PageId page) = 0;
  virtual bool holds(PageId page) const = 0;
  // Whether the number means anything to the expert, such as a page that left lately.
  virtual bool remembers(PageId page) const { return holds(page); }
  // The page is no more (its file is gone or shorter): afterwards it is not remembered.
  virtual void forget(PageId page) = 0;

  std::span<const PageId> evicted() const { return evicted_; }
  std::uint32_t capacity() const { return capacity_; }

 protected:
  std::vector<PageId> evicted_;

 private:
  const std::uint32_t capacity_;
};

// The element of a table by page number that grows as numbers come.
template <typename Value>
Value& at_page(std::vector<Value>& table, PageId page) {
  if (raw(page) >= table.size()) table.resize(raw(page) + raw(page) / 2 + 16);
  return table[raw(page)];
}
// Or what an unknown page has.
template <typename Value>
Value at_page_or(const std::vector<Value>& table, PageId page, Value unknown) {
  return raw(page) < table.size() ? table[raw(page)] : unknown;
}

}  // namespace cairn
