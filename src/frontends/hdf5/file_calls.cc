// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/file_calls.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "frontends/hdf5/chunk_room.h"
#include "frontends/hdf5/forwarding.h"
#include "frontends/hdf5/kept_errors.h"
#include "frontends/hdf5/lower_connector.h"
#include "frontends/hdf5/regions.h"

namespace cairn::hdf5 {
namespace {

// The object of a file that was opened below.
void* wrap_file(Library& library, LowerAccess& access, void* lower, FileOpening opening) {
  if (lower == nullptr) return nullptr;
  opening.connector = access.share_connector();
  opening.is_native = access.is_native();
  OpenFile* file = make_file(library, std::move(opening));
  if (file == nullptr) return nullptr;
  Object* object = make_object(*file, lower, Kind::kOther);
  release(*file);
  return object;
}

// Which file it is, and whether its datasets may be served.
void look_at_opened(Library& library, const LowerFile& file, const FileLook& before,
                    FileOpening& opening) {
  if (file.file == nullptr || region_calls() == nullptr) return;
  const KeptErrors kept(library.call);
  opening.identity = before.identity;
  opening.number = file.number();
  if (opening.ranks.are_there()) {
    if (!opening.ranks.can_vote()) return;
    opening.own = OwnDescriptor(opening.name, before.identity);
    opening.descriptor = opening.own.get();
  } else {
    opening.descriptor = file.descriptor_of(before.identity);
  }
  if (opening.flags == 0) opening.source = FileSource::of(opening.descriptor, before);
}

// A request of a call that came without an object.
void wrap_request(void* object, void** request) {
  if (object == nullptr || request == nullptr || *request == nullptr) return;
  *request = make_object(*object_of(object)->file, *request, Kind::kOther);
}

// Asks below about a file by name. HDF5 asks every connector that it finds whether it can open a
// file that the native one could not, and what went wrong there is to be told afterwards: the stack
// is kept as it was unless this connector was asked for something.
herr_t ask_about_name(Library& library, H5VL_file_specific_args_t arguments, hid_t transfer,
                      void** request) {
  const bool is_question = arguments.op_type == H5VL_FILE_IS_ACCESSIBLE;
  std::optional<KeptErrors> kept;
  if (is_question) kept.emplace(library.call);
  hid_t& properties =
      is_question ? arguments.args.is_accessible.fapl_id : arguments.args.del.fapl_id;
  const LowerAccess access(library, properties);
  if (!access.is_valid()) return -1;
  properties = access.properties();
  return library.call.H5VLfile_specific(nullptr, access.connector(), &arguments, transfer, request);
}

}  // namespace

CAIRN_HDF5_CALLBACK(void*, create_file,
                    (Library & library, const char* name, unsigned flags, hid_t creation,
                     hid_t access, hid_t transfer, void** request)) {
  append_own_filters(library);
  LowerAccess below(library, access);
  if (!below.is_valid()) return nullptr;
  void* lower =
      library.call.H5VLfile_create(name, flags, creation, below.properties(), transfer, request);
  FileOpening opening = {.name = name, .flags = flags | kReadWrite};
  opening.chunk_room = default_chunk_room(library, access);
  look_at_opened(library, {library, lower, below.connector(), transfer}, FileLook::by_name(name),
                 opening);
  void* file = wrap_file(library, below, lower, std::move(opening));
  wrap_request(file, request);
  return file;
}

CAIRN_HDF5_CALLBACK(void*, open_file,
                    (Library & library, const char* name, unsigned flags, hid_t access,
                     hid_t transfer, void** request)) {
  append_own_filters(library);
  LowerAccess below(library, access);
  if (!below.is_valid()) return nullptr;
  const FileLook before = FileLook::by_name(name);
  FileOpening opening = {.name = name, .flags = flags};
  if (opening.flags == 0)
    opening.ranks = Ranks(library, below.properties());
  else
    opening.chunk_room = default_chunk_room(library, access);
  void* lower = library.call.H5VLfile_open(name, flags, below.properties(), transfer, request);
  look_at_opened(library, {library, lower, below.connector(), transfer}, before, opening);
  void* file = wrap_file(library, below, lower, std::move(opening));
  wrap_request(file, request);
  return file;
}

herr_t file_specific(Library& library, void* object, H5VL_file_specific_args_t* arguments,
                     hid_t transfer, void** request) {
  CAIRN_DCHECK(arguments != nullptr);
  if (arguments->op_type == H5VL_FILE_IS_ACCESSIBLE || arguments->op_type == H5VL_FILE_DELETE) {
    return ask_about_name(library, *arguments, transfer, request);
  }
  if (object == nullptr) return -1;
  OpenFile& file = *object_of(object)->file;
  H5VL_file_specific_args_t lower = *arguments;
  if (lower.op_type == H5VL_FILE_IS_EQUAL) {
    lower.args.is_equal.obj2 = lower_of(lower.args.is_equal.obj2);
  }
  const herr_t result = ask_lower<&Hdf5Functions::H5VLfile_specific, herr_t>(
      *object_of(object), &lower, transfer, request);
  if (result >= 0 && lower.op_type == H5VL_FILE_REOPEN) {
    // The place for the answer is the program's, in both copies of the arguments.
    void*& reopened = *lower.args.reopen.file;
    reopened = make_object(file, reopened, Kind::kOther);
  }
  return result;
}

herr_t group_specific(void* object, H5VL_group_specific_args_t* arguments, hid_t transfer,
                      void** request) {
  CAIRN_DCHECK(arguments != nullptr);
  if (object == nullptr) return -1;
  H5VL_group_specific_args_t lower = *arguments;
  if (lower.op_type == H5VL_GROUP_MOUNT) {
    lower.args.mount.child_file = lower_of(lower.args.mount.child_file);
  }
  return ask_lower<&Hdf5Functions::H5VLgroup_specific, herr_t>(*object_of(object), &lower, transfer,
                                                               request);
}

}  // namespace cairn::hdf5
