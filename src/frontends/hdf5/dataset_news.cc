// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/dataset_news.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <atomic>
#include <new>
#include <span>

#include "base/check.h"
#include "frontends/hdf5/dataset_identity.h"
#include "frontends/hdf5/dataset_questions.h"
#include "frontends/hdf5/kept_errors.h"
#include "frontends/hdf5/regions.h"

namespace cairn::hdf5 {
namespace {

using arrays::LeftReason;

constexpr std::int64_t kPauseMs = 100;
// A program may read thousands of small datasets. The node hears of so many of each process of
// which nothing is served.
constexpr unsigned kUnfitMax = 256;
// More cells, and bytes, than a file may have.
constexpr std::uint64_t kMost = std::uint64_t{1} << 62;

// The closes of one file, and of what is open in it, wait so long in all for a node that has no
// time for their news: what it has not heard then is lost.
constexpr std::int64_t kPatienceNs = 50'000'000;
constexpr timespec kNap = {.tv_sec = 0, .tv_nsec = 200'000};

std::atomic<unsigned> unfit_told{0};
// A node that did not hear in that time is not waited for again before it has heard something.
std::atomic<bool> is_node_deaf{false};

std::int64_t nanoseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

std::int64_t milliseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// Whether the node would believe that an array of that shape is in a file.
bool is_sound(std::span<const std::uint64_t> shape, std::uint64_t cell_bytes) {
  std::uint64_t bytes = cell_bytes;
  if (bytes == 0 || bytes > kMost) return false;
  for (const std::uint64_t size : shape) {
    if (size == 0 || bytes > kMost / size) return false;
    bytes *= size;
  }
  return true;
}

}  // namespace

ReadNews* ReadNews::find(const OpenFile& file, const Token& token, const char* name) {
  auto* each = static_cast<ReadNews*>(file.news);
  while (each != nullptr &&
         (each->token_ != token || (name != nullptr && strcmp(each->name_, name) != 0)))
    each = each->next_.get();
  return each;
}

ReadNews* ReadNews::of(Dataset& dataset, hid_t transfer) {
  OpenFile& file = *dataset.file;
  if (dataset.news != nullptr || file.descriptor < 0) return if_any(dataset);
  const bool is_shared = identify(dataset, transfer) && dataset.is_in_file;
  // In a file that may be written HDF5 gives a new dataset the place of one that is gone.
  const bool keeps_places = dataset.is_read_only && file.source.is_open();
  char name[sizeof name_] = {};
  if (!keeps_places) {
    const KeptErrors kept(file.library.call);
    ask_name(dataset, transfer, name, sizeof name);
  }
  const Token token = dataset.token_words();
  if (ReadNews* known = is_shared ? find(file, token, keeps_places ? nullptr : name) : nullptr) {
    known->is_outdated_ = !keeps_places;
    dataset.news = known;
    return known;
  }
  auto* const first = static_cast<ReadNews*>(file.news);
  const std::size_t count = first == nullptr ? 0 : first->position_ + 1;
  auto* const fresh = new (std::nothrow) ReadNews;
  dataset.news = fresh;
  dataset.owns_news = !is_shared || count >= kSharedMax;
  if (fresh == nullptr) return nullptr;
  fresh->token_ = token;
  memcpy(fresh->name_, name, sizeof name);
  if (dataset.owns_news) return fresh;
  fresh->position_ = count;
  fresh->next_.reset(first);
  file.news = fresh;
  return fresh;
}

bool leave(const Dataset& dataset, LeftReason why) {
  if (ReadNews* news = ReadNews::if_any(dataset)) news->left = why;
  return false;
}

bool leave_all(const Dataset& dataset, LeftReason why) {
  CAIRN_DCHECK(is_of_dataset(why));
  if (ReadNews* news = ReadNews::if_any(dataset)) news->unfit = why;
  return false;
}

void note_offset(const Dataset& dataset, std::uint64_t offset) {
  if (ReadNews* news = ReadNews::if_any(dataset)) news->offset = offset;
}

void note_served(const Dataset& dataset, std::uint64_t bytes) {
  if (ReadNews* news = ReadNews::if_any(dataset)) news->served_bytes += bytes;
}

void ReadNews::count_read(bool is_served) {
  has_counted_ = true;
  const LeftReason why = left != LeftReason::kNone ? left : unfit;
  left = LeftReason::kNone;
  read_bytes_ += served_bytes;
  served_bytes = 0;
  if (is_served && why == LeftReason::kNone) {
    ++reads_;
  } else {
    ++left_reads_[static_cast<std::size_t>(why == LeftReason::kNone ? LeftReason::kNotThere : why)];
  }
}

bool ReadNews::is_to_be_told() {
  if (unfit == LeftReason::kNone || has_place_) return true;
  has_place_ = unfit_told.load(std::memory_order_relaxed) < kUnfitMax &&
               unfit_told.fetch_add(1, std::memory_order_relaxed) < kUnfitMax;
  return has_place_;
}

void ReadNews::tell_sometimes(Dataset& dataset, hid_t transfer) {
  if (told_at_ms_ == 0 || milliseconds_now() - told_at_ms_ >= kPauseMs) tell(dataset, transfer);
}

void ReadNews::tell(Dataset& dataset, hid_t transfer) {
  told_at_ms_ = milliseconds_now();
  if (!is_to_be_told()) return;
  if (!is_described_ || is_outdated_) describe(dataset, transfer);
  (void)send(*dataset.file);
}

void ReadNews::tell_last(Dataset& dataset, hid_t transfer) {
  tell(dataset, transfer);
  if (has_counted_ && is_described_) send_patiently(*dataset.file);
}

void ReadNews::tell_rest(OpenFile& file) {
  for (auto* each = static_cast<ReadNews*>(file.news); each != nullptr; each = each->next_.get()) {
    if (each->has_counted_ && each->is_described_) each->send_patiently(file);
  }
}

void ReadNews::send_patiently(OpenFile& file) {
  while (send(file) == -EAGAIN) {
    if (file.waited_ns >= kPatienceNs) is_node_deaf.store(true, std::memory_order_relaxed);
    if (is_node_deaf.load(std::memory_order_relaxed)) return;
    const std::int64_t began = nanoseconds_now();
    ::nanosleep(&kNap, nullptr);
    file.waited_ns += nanoseconds_now() - began;
  }
}

int ReadNews::send(const OpenFile& file) {
  CAIRN_DCHECK(is_described_);
  const RegionCalls* calls = region_calls();
  if (calls == nullptr || file.descriptor < 0) return -ENOTSUP;
  const CairnArrayNews news = {.descriptor = file.descriptor,
                               .dimensions = static_cast<std::uint32_t>(dimensions_),
                               .layout = static_cast<std::uint32_t>(layout_),
                               .unfit = static_cast<std::uint32_t>(unfit),
                               .cell_bytes = cell_bytes_,
                               .offset = offset,
                               .token = {token_[0], token_[1]},
                               .shape = shape_.data(),
                               .chunk = has_chunks_ ? chunk_.data() : nullptr,
                               .filter_count = static_cast<std::uint32_t>(filter_count_),
                               .reason_count = static_cast<std::uint32_t>(left_reads_.size()),
                               .filters = filters_.data(),
                               .name = name_,
                               .served_reads = reads_,
                               .served_bytes = read_bytes_,
                               .left_reads = left_reads_.data()};
  if (const int error = calls->news(&news); error != 0) return error;
  is_node_deaf.store(false, std::memory_order_relaxed);
  has_counted_ = false;
  reads_ = 0;
  read_bytes_ = 0;
  left_reads_ = {};
  return 0;
}

void ReadNews::describe(Dataset& dataset, hid_t transfer) {
  const KeptErrors kept(dataset.file->library.call);
  is_described_ = true;
  is_outdated_ = false;
  ask_name(dataset, transfer, name_, sizeof name_);
  describe_shape(dataset, transfer);
  describe_layout(dataset, transfer);
}

void ReadNews::describe_shape(const Dataset& dataset, hid_t transfer) {
  const Hdf5Functions& call = dataset.file->library.call;
  dimensions_ = 0;
  const hid_t type = ask_dataset(dataset, H5VL_DATASET_GET_TYPE, transfer);
  if (type >= 0) {
    cell_bytes_ = call.H5Tget_size(type);
    call.H5Tclose(type);
  }
  const hid_t space = ask_dataset(dataset, H5VL_DATASET_GET_SPACE, transfer);
  if (space < 0) return;
  std::array<hsize_t, arrays::kDimensionsMax> shape{};
  const int dimensions = call.H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  call.H5Sclose(space);
  if (dimensions < 1 || dimensions > static_cast<int>(shape.size())) return;
  std::copy(shape.begin(), shape.end(), shape_.begin());
  const auto count = static_cast<std::size_t>(dimensions);
  if (is_sound(std::span(shape_).first(count), cell_bytes_)) dimensions_ = count;
}

void ReadNews::describe_layout(const Dataset& dataset, hid_t transfer) {
  const Hdf5Functions& call = dataset.file->library.call;
  layout_ = arrays::Layout::kOther;
  has_chunks_ = false;
  filter_count_ = 0;
  const hid_t creation = ask_dataset(dataset, H5VL_DATASET_GET_DCPL, transfer);
  if (creation < 0) return;
  const H5D_layout_t layout = call.H5Pget_layout(creation);
  if (layout == H5D_CONTIGUOUS && call.H5Pget_external_count(creation) == 0)
    layout_ = arrays::Layout::kContiguous;
  if (layout == H5D_CHUNKED) {
    layout_ = arrays::Layout::kChunked;
    std::array<hsize_t, arrays::kDimensionsMax> chunk{};
    const int found = call.H5Pget_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
    std::copy(chunk.begin(), chunk.end(), chunk_.begin());
    has_chunks_ = found > 0 && static_cast<std::size_t>(found) == dimensions_ &&
                  is_sound(std::span(chunk_).first(dimensions_), 1);
  }
  const int filters = call.H5Pget_nfilters(creation);
  for (int at = 0; at < filters && filter_count_ < kFiltersMax; ++at) {
    std::size_t values = 0;
    const int number = call.H5Pget_filter2(creation, static_cast<unsigned>(at), nullptr, &values,
                                           nullptr, 0, nullptr, nullptr);
    if (number > 0) filters_[filter_count_++] = static_cast<std::uint32_t>(number);
  }
  call.H5Pclose(creation);
}

}  // namespace cairn::hdf5
