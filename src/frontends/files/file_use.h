// SPDX-License-Identifier: Apache-2.0
// What a call uses of an open file. Another thread may close the file meanwhile, and its private
// descriptor may be another file's then: bytes that were read or stored through that would stay in
// the wrong file's blocks, or reach the wrong file. So the first time that the call needs what is
// behind the record, it counts on the record, which then outlives the call; a hit needs nothing.
//
//   FileUse use(file);      before all locks: its end may be the end of the record
//   read_object(use.access(actor), ...)
//
// A call that is too late, because the record has ended or is another file's, gets -EBADF; the
// hooks look then whether the number is open (answer() in frontends/posix/late_calls.h).
//
// Left open: a call that waits for somebody else's lock (flock(), F_SETLKW) counts on nothing. A
// thread that rests between its look into the table and the first line of its call until the
// record, which rests too (open_file_pool.h), is another file's, writes to that. And where the
// record works on the program's own number (a full table, POSIX locks), a store that is about to
// begin may meet another file at that number, as the program's own call may.
//
// Thread safety: a call has one of its own.
#pragma once

#include "frontends/descriptors/open_file.h"
#include "memory/backing/backing.h"

namespace cairn {

class FileUse final : public Backing {
 public:
  explicit FileUse(OpenFile& file)
      : Backing(file.private_fd()), file_(file), object_(file.object) {}
  ~FileUse() {
    if (__builtin_expect(is_counted_, 0)) end();
  }

  OpenFile& file() const { return file_; }
  ObjectIndex object() const { return object_; }
  ObjectAccess access(Actor& actor) {
    return ObjectAccess{actor, object_, *this, Session::instance(), file_.index};
  }
  // Counts on the record, if that has not been done, and keeps signal handlers out from then on:
  // one that jumped out would leave the count behind. False: it is too late.
  bool begin() { return is_counted_ ? !is_late_ : count(); }

  bool is_writable() const override { return file_.backing->is_writable(); }
  ssize_t read(std::uint64_t offset, void* buffer, std::size_t length) override;
  ssize_t read_once(std::uint64_t offset, void* buffer, std::size_t length) override;
  ssize_t read_parts(std::uint64_t offset, std::span<iovec> parts) override;
  void will_read(std::uint64_t offset, std::size_t length) override;
  ssize_t write(std::uint64_t offset, const void* buffer, std::size_t length) override;
  ssize_t write_once(std::uint64_t offset, std::span<const iovec> parts) override;
  ssize_t append(const void* buffer, std::size_t length, std::uint64_t* offset) override;
  int status(StoreStatus* status) override;
  int truncate(std::uint64_t size) override;
  int truncate_as_called(std::uint64_t size) override;
  int allocate(int mode, std::uint64_t offset, std::uint64_t length) override;
  int set_mtime(std::int64_t mtime_ns) override;
  int sync(SyncDepth depth) override;
  bool may_have_other_openers() const override { return file_.backing->may_have_other_openers(); }

 private:
  bool count();
  void end();
  template <typename Call>
  ssize_t read_with(Call&& call);

  OpenFile& file_;
  const ObjectIndex object_;
  bool is_counted_ = false;
  bool is_late_ = false;  // and counted: what ends with that must wait for the end of all locks
};

}  // namespace cairn
