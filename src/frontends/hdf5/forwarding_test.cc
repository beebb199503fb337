// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/forwarding.h"

#include <gtest/gtest.h>

#include "frontends/hdf5/connector.h"
#include "frontends/hdf5/link_calls.h"
#include "frontends/hdf5/wrap_calls.h"

namespace cairn::hdf5 {
namespace {

constexpr hid_t kConnector = 7;

// What arrived below.
struct Arrived {
  void* object = nullptr;
  hid_t connector = 0;
  hid_t transfer = 0;
  herr_t answer = 0;
  void* opened = nullptr;
  int closed_connectors = 0;
};
Arrived arrived;

herr_t read_attribute(void* object, hid_t connector, hid_t, void*, hid_t transfer, void** request) {
  arrived.object = object;
  arrived.connector = connector;
  arrived.transfer = transfer;
  if (request != nullptr) *request = &arrived;
  return arrived.answer;
}

void* open_group(void* object, const H5VL_loc_params_t*, hid_t connector, const char*, hid_t, hid_t,
                 void**) {
  arrived.object = object;
  arrived.connector = connector;
  return arrived.opened;
}

herr_t close_group(void*, hid_t, hid_t, void**) { return arrived.answer; }

class Forwarding : public testing::Test {
 protected:
  Forwarding() {
    arrived = {};
    library_.call.H5VLattr_read = read_attribute;
    library_.call.H5VLgroup_open = open_group;
    library_.call.H5VLgroup_close = close_group;
    library_.call.H5Eget_current_stack = []() -> hid_t { return 5; };
    library_.call.H5Eset_current_stack = [](hid_t) -> herr_t { return 0; };
    library_.call.H5Idec_ref = [](hid_t) { return arrived.closed_connectors++; };
    OpenFile* file = make_file(library_, {"file", 0, kConnector, true});
    object_ = make_object(*file, &lower_, Kind::kOther);
    release(*file);
  }
  ~Forwarding() override {
    if (object_ != nullptr) release(object_);
    EXPECT_EQ(arrived.closed_connectors, 1);
  }

  const H5VL_class_t& class_ = connector_class_of(0);
  Library library_ = {};
  int lower_ = 0;
  Object* object_ = nullptr;
};

TEST_F(Forwarding, PassesTheLowerObjectAndItsConnector) {
  arrived.answer = 3;
  EXPECT_EQ(class_.attr_cls.read(object_, 1, nullptr, 99, nullptr), 3);
  EXPECT_EQ(arrived.object, &lower_);
  EXPECT_EQ(arrived.connector, kConnector);
  EXPECT_EQ(arrived.transfer, 99);
}

TEST_F(Forwarding, WrapsARequest) {
  void* request = nullptr;
  EXPECT_EQ(class_.attr_cls.read(object_, 1, nullptr, 99, &request), 0);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(lower_of(request), &arrived);
  release(object_of(request));
}

TEST_F(Forwarding, WrapsWhatWasOpened) {
  int opened = 0;
  arrived.opened = &opened;
  const H5VL_loc_params_t place = {};
  void* group = class_.group_cls.open(object_, &place, "group", 0, 0, nullptr);
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(lower_of(group), &opened);
  EXPECT_EQ(object_of(group)->file, object_->file);
  EXPECT_EQ(class_.group_cls.close(group, 0, nullptr), 0);
}

TEST_F(Forwarding, OpensNothingWhereNothingWasOpened) {
  const H5VL_loc_params_t place = {};
  EXPECT_EQ(class_.group_cls.open(object_, &place, "group", 0, 0, nullptr), nullptr);
}

TEST_F(Forwarding, AFailedCloseLeavesTheObject) {
  arrived.answer = -1;
  EXPECT_LT(class_.group_cls.close(object_, 0, nullptr), 0);
  EXPECT_EQ(object_->lower, &lower_);
}

TEST_F(Forwarding, NoObjectIsAFailureAndNoCrash) {
  const H5VL_loc_params_t place = {};
  H5I_type_t type = H5I_BADID;
  uint64_t flags = 0;
  const H5VL_class_t* found = nullptr;
  H5VL_link_create_args_t creation = {};
  H5VL_file_specific_args_t flush = {};
  H5VL_group_specific_args_t mount = {};
  EXPECT_LT(class_.attr_cls.read(nullptr, 1, nullptr, 0, nullptr), 0);
  EXPECT_EQ(class_.group_cls.open(nullptr, &place, "group", 0, 0, nullptr), nullptr);
  EXPECT_LT(class_.group_cls.close(nullptr, 0, nullptr), 0);
  EXPECT_LT(class_.group_cls.specific(nullptr, &mount, 0, nullptr), 0);
  EXPECT_LT(class_.file_cls.specific(nullptr, &flush, 0, nullptr), 0);
  EXPECT_LT(class_.link_cls.create(&creation, nullptr, &place, 0, 0, 0, nullptr), 0);
  EXPECT_LT(class_.link_cls.copy(nullptr, &place, nullptr, &place, 0, 0, 0, nullptr), 0);
  EXPECT_EQ(class_.object_cls.open(nullptr, &place, &type, 0, nullptr), nullptr);
  EXPECT_LT(class_.introspect_cls.get_conn_cls(nullptr, H5VL_GET_CONN_LVL_CURR, &found), 0);
  EXPECT_LT(class_.introspect_cls.opt_query(nullptr, H5VL_SUBCLS_FILE, 1, &flags), 0);
  EXPECT_EQ(class_.wrap_cls.get_object(nullptr), nullptr);
  EXPECT_EQ(class_.wrap_cls.unwrap_object(nullptr), nullptr);
  EXPECT_LT(class_.request_cls.free(nullptr), 0);
  void* nothing[] = {nullptr};
  hid_t ids[] = {0};
  EXPECT_LT(class_.dataset_cls.read(1, nothing, ids, ids, ids, 0, nothing, nullptr), 0);
  EXPECT_LT(class_.dataset_cls.read(0, nothing, ids, ids, ids, 0, nothing, nullptr), 0);
}

TEST_F(Forwarding, AContextOfTheNativeConnectorIsTheFilesOwn) {
  void* context = nullptr;
  ASSERT_EQ(get_wrap_context(object_, &context), 0);
  EXPECT_EQ(context, &object_->file->context);
  EXPECT_EQ(free_wrap_context(context), 0);
}

TEST(ConnectorClasses, AreOfOneNameAndOfOneSlotEach) {
  for (int slot = 0; slot < kLibrariesMax; slot++) {
    const H5VL_class_t& one = connector_class_of(slot);
    EXPECT_STREQ(one.name, kConnectorName);
    EXPECT_EQ(one.value, kConnectorValue);
    for (int other = 0; other < slot; other++) {
      EXPECT_NE(one.file_cls.open, connector_class_of(other).file_cls.open);
      EXPECT_EQ(one.file_cls.close, connector_class_of(other).file_cls.close);
    }
  }
}

TEST(ClaimSlot, RefusesWhatIsNoHdf5) { EXPECT_LT(claim_slot(&kConnectorValue), 0); }

}  // namespace
}  // namespace cairn::hdf5
