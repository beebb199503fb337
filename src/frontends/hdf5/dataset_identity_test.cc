// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/dataset_identity.h"

#include <gtest/gtest.h>

namespace cairn::hdf5 {
namespace {

// What the connector below answers, in place of an HDF5.
struct Below {
  unsigned long number = 3;
  bool has_token = true;
  int questions = 0;
  int references = 1;
};
Below below;

herr_t answer_object(void*, const H5VL_loc_params_t* place, hid_t, H5VL_object_get_args_t* question,
                     hid_t, void**) {
  below.questions++;
  question->args.get_info.oinfo->token.__data[0] = 42;
  question->args.get_info.oinfo->fileno = below.number;
  return below.has_token && place->type == H5VL_OBJECT_BY_SELF ? 0 : -1;
}

class DatasetIdentity : public testing::Test {
 protected:
  DatasetIdentity() {
    below = {};
    library_.call.H5VLobject_get = answer_object;
    library_.call.H5Eget_current_stack = []() -> hid_t { return 5; };
    library_.call.H5Eset_current_stack = [](hid_t) -> herr_t { return 0; };
    library_.call.H5Idec_ref = [](hid_t) { return --below.references; };
  }

  // A dataset that was opened through field.h5, and is closed with the test.
  Dataset& open(unsigned flags) {
    OpenFile* file = make_file(
        library_,
        {.name = "field.h5", .flags = flags, .connector = 7, .is_native = true, .number = 3});
    object_ = make_object(*file, &below, Kind::kDataset);
    release(*file);
    return static_cast<Dataset&>(*object_);
  }
  ~DatasetIdentity() override {
    if (object_ == nullptr) return;
    EXPECT_EQ(below.references, 1);
    release(object_);
    EXPECT_EQ(below.references, 0) << "the file keeps its connector as long as its last object";
  }

  Library library_ = {};
  Object* object_ = nullptr;
};

TEST_F(DatasetIdentity, NamesThePlaceInTheFile) {
  Dataset& dataset = open(0);
  EXPECT_EQ(below.questions, 0) << "an open asks nothing";
  ASSERT_TRUE(identify(dataset, 0));
  EXPECT_FALSE(library_.has_hidden_files);
  EXPECT_EQ(dataset.token.__data[0], 42);
  EXPECT_TRUE(dataset.is_read_only);
}

TEST_F(DatasetIdentity, IsAskedOnce) {
  Dataset& dataset = open(0);
  identify(dataset, 0);
  const int questions = below.questions;
  EXPECT_TRUE(identify(dataset, 0));
  EXPECT_EQ(below.questions, questions);
}

TEST_F(DatasetIdentity, OfAWritableFileIsNotReadOnly) {
  EXPECT_TRUE(identify(open(kReadWrite), 0));
  EXPECT_FALSE(static_cast<Dataset*>(object_)->is_read_only);
}

TEST_F(DatasetIdentity, BehindALinkIntoAnotherFileIsNotReadOnly) {
  below.number = 4;
  Dataset& dataset = open(0);
  EXPECT_TRUE(identify(dataset, 0));
  EXPECT_FALSE(dataset.is_read_only) << "how that file is open is not known";
  EXPECT_TRUE(library_.has_hidden_files);
}

TEST_F(DatasetIdentity, StaysUnknownWhereNobodyKnowsIt) {
  below.has_token = false;
  Dataset& dataset = open(0);
  EXPECT_FALSE(identify(dataset, 0));
  const int questions = below.questions;
  EXPECT_FALSE(identify(dataset, 0));
  EXPECT_EQ(below.questions, questions);
  EXPECT_FALSE(dataset.is_read_only);
}

}  // namespace
}  // namespace cairn::hdf5
