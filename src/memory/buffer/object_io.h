// SPDX-License-Identifier: Apache-2.0
// The only way in to the blocks: reading and writing a byte range of an object.
//
// Results are a byte count or -errno, as the POSIX call above returns them. A write is visible to
// every client of the node when the call returns; a dirty byte stays until the backing store has
// it. With no free bucket, or when the object is in through mode, the call goes to the backing
// store; it never waits for room. (Only the first piece of a block that is written in pieces waits
// up to 20 ms for the organizer, where a file tier would take each piece as an operation of its
// own.)
//
// Thread safety: any number of threads and processes at once; one writer per block at a time.
// Source: pread(2), pwrite(2); consistency as POSIX asks of write(2) followed by read(2).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "memory/backing/backing.h"
#include "memory/buffer/hand_over.h"
#include "memory/tiers/actor.h"

namespace cairn {

// The things that a data call uses: the thread, the backing and the way to the service.
struct ObjectAccess {
  ObjectAccess(Actor& thread, ObjectIndex object, Backing& behind, HandOver& way,
               DescriptionIndex description = DescriptionIndex::kNone)
      : actor(thread),
        index(object),
        backing(behind),
        service(way),
        stream(description),
        record(thread.object(object)) {}

  Actor& actor;
  ObjectIndex index;
  Backing& backing;
  HandOver& service;
  // Which of its descriptions the program uses; kNone: the call is not the program's own.
  DescriptionIndex stream;
  Object& record;

  Object& object() const { return record; }
};

// Reads up to `length` bytes at `offset`; short only at the end of the file.
ssize_t read_object(const ObjectAccess& access, std::uint64_t offset, void* buffer,
                    std::size_t length);

// Writes `length` bytes at `offset`, growing the file as needed, and stamps mtime.
ssize_t write_object(const ObjectAccess& access, std::uint64_t offset, const void* buffer,
                     std::size_t length);

// The same at the end of the file, atomically against other appends (O_APPEND). `*offset` gets
// where it went.
ssize_t append_object(const ObjectAccess& access, const void* buffer, std::size_t length,
                      std::uint64_t* offset);

// After a write of `written` bytes, by whatever way: makes them durable when the file is one of
// persistent-sync mode, which promises that. Returns `written` or -errno.
ssize_t store_if_promised(const ObjectAccess& access, ssize_t written);

}  // namespace cairn
