// SPDX-License-Identifier: Apache-2.0
// What the attach server tells the rest of the service.
//
// Thread safety: the server's thread calls all functions, and the request reader's thread
// on_question() and log(). They must not block.
#pragma once

#include <cstdint>
#include <string>

#include "frontends/protocol/protocol.h"
#include "service/attachment/client_message.h"
#include "service/write_back/asker.h"
#include "service/write_back/unserved_files.h"

namespace cairn::node {

class AttachEvents {
 public:
  enum class Departure : std::uint8_t {
    kDied,  // return everything
    // a new image runs in the process: locks and leases at once, its holds wait for the new image
    kExeced
  };
  virtual void on_departure(Owner dead, Departure how) = 0;
  // The new image of a process has taken over what it wants of `old`, which was departed by exec.
  virtual void on_inherited(Owner old) = 0;
  virtual void on_descriptor(ObjectIndex object) = 0;
  virtual void on_discarded(ObjectIndex object) = 0;
  // A program, of whose process `reader` is the present image, reads a box of an array.
  virtual void on_array_read(const message::ArrayRead& read, Owner reader) = 0;
  // The same of an array that is packed in its file.
  virtual void on_packed_read(const message::PackedRead& read, Owner reader) = 0;
  // What a program of that run reads of arrays.
  virtual void on_array_news(const message::ArrayNews& news, std::uint32_t run) = 0;
  // These answer the asker, those that store in threads of their own.
  virtual void on_question(Asker asker, const message::Flush& flush) = 0;
  virtual void on_question(Asker asker, const message::Sync& sync) = 0;
  virtual void on_question(Asker asker, const message::MeetUnserved& meet) = 0;
  virtual void on_question(Asker asker, const message::MakeDurable& durable) = 0;
  virtual void on_question(Asker asker, const message::NoteCut& cut) = 0;
  virtual void on_question(Asker asker, const message::NoteRenamed& renamed) = 0;
  virtual void on_question(Asker asker, message::MakeNamesDurable names) = 0;
  virtual void on_unserved(Asker asker) = 0;
  virtual void on_keep_through(Asker asker, LedgerId ledger, UniqueFd file,
                               const protocol::UnservedMessage& told) = 0;
  // A slot that was waited for turns out to be nobody's: those who wait until nobody is attached
  // look again.
  virtual void on_claims_settled() = 0;
  // A ledger of the unserved is over.
  virtual void on_ledger_over() = 0;
  virtual void log(const std::string& text) = 0;

 protected:
  ~AttachEvents() = default;
};

}  // namespace cairn::node
