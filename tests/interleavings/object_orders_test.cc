// SPDX-License-Identifier: Apache-2.0
// The table of objects in every order of its steps: a file has one object, an object that somebody
// has open stays, and a death costs no more than a record.
#include "interleavings/testing/expect_all.h"
#include "memory/catalog/object_table.h"

namespace cairn::stepping {
namespace {

// Operations: a process opens one file (`a`) or another (`b`), closes the last that it opened
// (`c`), does that and forgets it as its file is gone (`u`), and looks for the first file (`f`).
class ObjectScene final : public Scene {
 public:
  ObjectScene() {
    for (ObjectTable& table : shared_.tables)
      table = ObjectTable(shared_.objects.data(), kCapacity, HashLines(&shared_.line, 1),
                          &shared_.board, &unserved_);
  }
  std::span<std::byte> memory() override { return bytes_of(shared_); }
  std::span<const std::byte> own(unsigned actor) override {
    return bytes_of(shared_.opened[actor]);
  }
  bool is_aside(const void* address) const override {
    const auto* first = reinterpret_cast<const std::byte*>(shared_.objects.data());
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - first);
    return offset < sizeof shared_.objects && offset % sizeof(Object) >= object_layout::kLine;
  }
  void act(unsigned actor, char operation) override {
    Opened& opened = shared_.opened[actor];
    switch (operation) {
      case 'a':
      case 'b':
        return open(actor, operation == 'a' ? 1 : 2);
      case 'f':
        return find(actor);
      default:
        return opened.count == 0 ? void() : close(actor, operation == 'u');
    }
  }
  void bury(unsigned actor) override {
    shared_.somebody_died = true;
    owners().advance(owner_slot(actor));
  }
  void check() override {
    for_each_open([this](unsigned, const Open& open) {
      const Object& object = table(0).at(open.object);
      require(object.has(kObjectLive) && object.is_of(key(open.file)), "an open object has gone");
    });
    std::array<unsigned, 3> found{};
    for (const std::uint32_t index : in_line()) {
      const Object& object = shared_.objects[index];
      const std::uint64_t file = object.inode;
      if (object.has(kObjectLive)) require(++found[file] == 1, "a file has two objects");
    }
  }
  void settle() override {
    for_each_dead([this](Open& open) { (void)table(0).at(open.object).opens.fetch_sub(1); });
    const Owner last(1, 0);
    for (const std::uint64_t file : {1, 2}) {
      const ObjectIndex first = acquire(table(0), file, last);
      require(first != ObjectIndex::kNone, "a file finds no record");
      require(acquire(table(0), file, last) == first, "a file gets a second object");
      require(table(0).find(key(file)) == first, "an object is not found");
      (void)table(0).at(first).opens.fetch_sub(2);
    }
    check();
    for_each_open(
        [this](unsigned, const Open& open) { (void)table(0).at(open.object).opens.fetch_sub(1); });
    for (std::uint32_t index = 1; index < kCapacity; ++index)
      (void)table(0).reclaim(ObjectIndex{index}, last, owners());
    expect_nothing_left();
  }

 private:
  static constexpr std::uint32_t kCapacity = 8;
  static constexpr unsigned kProcesses = 3;
  struct Open {
    ObjectIndex object;
    std::uint64_t file;
  };
  struct Opened {
    std::array<Open, 8> opens{};
    std::uint32_t count = 0;
  };
  struct Shared {
    Generations generations;
    ObjectBoard board{};
    HashLine line{};
    std::array<Object, kCapacity> objects{};
    std::array<ObjectTable, kProcesses> tables;  // with each process's run of records
    std::array<Opened, kProcesses> opened{};
    bool somebody_died = false;
  };
  OwnerTable owners() { return shared_.generations.table(); }
  ObjectTable& table(unsigned actor) { return shared_.tables[actor]; }
  static Owner self(unsigned actor) { return Owner(owner_slot(actor), 0); }
  static ObjectKey key(std::uint64_t file) { return file_key(1, file, 7); }

  ObjectIndex acquire(ObjectTable& table, std::uint64_t file, Owner self) {
    Acquisition how;
    do {
      const ObjectIndex index =
          table.acquire(key(file), {100, 5, 6, table.reclaims()}, self, owners(), &how);
      if (index != ObjectIndex::kNone) return index;
    } while (how.is_too_old);
    return ObjectIndex::kNone;
  }
  void open(unsigned actor, std::uint64_t file) {
    const ObjectIndex index = acquire(table(actor), file, self(actor));
    if (index == ObjectIndex::kNone) return require(shared_.somebody_died, "the table is full");
    Opened& opened = shared_.opened[actor];
    opened.opens[opened.count++] = Open{index, file};
  }
  void close(unsigned actor, bool is_gone) {
    Opened& opened = shared_.opened[actor];
    const ObjectIndex index = opened.opens[--opened.count].object;
    if (table(actor).at(index).opens.fetch_sub(1) != 1) return;
    if (is_gone) (void)table(actor).retire(index, self(actor), owners());
    (void)table(actor).reclaim(index, self(actor), owners());
  }
  void find(unsigned actor) {
    const auto has_open = [this, actor] {
      bool is_open = false;
      for_each_open(
          [&](unsigned who, const Open& open) { is_open |= who == actor && open.file == 1; });
      return is_open;
    };
    const ObjectIndex found = table(actor).find(key(1));
    require(found != ObjectIndex::kNone || !has_open(), "who has a file open does not find it");
  }
  std::vector<std::uint32_t> in_line() const {
    std::vector<std::uint32_t> indices;
    for (const auto& slot : shared_.line.slots) {
      if (slot.peek() != 0) indices.push_back(static_cast<std::uint32_t>(slot.peek()));
    }
    return indices;
  }
  template <typename Visit>
  void for_each_open(Visit&& visit) {
    for (unsigned actor = 0; actor < kProcesses; ++actor) {
      if (!owners().is_alive(self(actor))) continue;
      const Opened& opened = shared_.opened[actor];
      for (std::uint32_t at = 0; at < opened.count; ++at) visit(actor, opened.opens[at]);
    }
  }
  template <typename Visit>
  void for_each_dead(Visit&& visit) {
    for (unsigned actor = 0; actor < kProcesses; ++actor) {
      if (owners().is_alive(self(actor))) continue;
      Opened& opened = shared_.opened[actor];
      for (; opened.count != 0; --opened.count) visit(opened.opens[opened.count - 1]);
    }
  }
  void expect_nothing_left() {
    std::uint32_t live = 0;
    for (const Object& object : shared_.objects) live += object.has(kObjectLive) ? 1 : 0;
    require(table(0).live_count() >= live, "the count of objects is too low");
    if (shared_.somebody_died) return;
    require(table(0).live_count() == 0 && live == 0, "an object is left");
    require(in_line().empty(), "a slot is left");
  }

  Shared shared_;
  UnservedBoard unserved_{};  // nobody writes it here
};

TEST(ObjectOrders, TwoProcessesOfWhichOneMayDie) {
  expect_all<ObjectScene>({"aca", "afc", "aua", "bac"}, {.deaths_max = 1});
}

TEST(ObjectOrders, MoreByChance) {
  expect_some<ObjectScene>({"aabccuf", "aabccuf", "aaccf"}, 6, 20'000);
}

}  // namespace
}  // namespace cairn::stepping
