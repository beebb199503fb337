// SPDX-License-Identifier: Apache-2.0
// What clients and the service pass each other, in every order of their steps: questions, offers of
// slots and events. Actor 0 is the service, the others are its clients.
#include "interleavings/testing/expect_all.h"
#include "memory/arena/client_slot.h"
#include "memory/arena/event_ring.h"
#include "memory/arena/request_ring.h"
#include "memory/arena/slot_offer.h"

namespace cairn::stepping {
namespace {

constexpr std::uint16_t kService = ClientSlot::kOfService;
std::uint16_t slot_of(unsigned actor) {
  return static_cast<std::uint16_t>(actor == 0 ? kService : owner_slot(actor));
}

// Operations: the service answers all that waits (`s`), frees what the dead have asked (`x`, also
// in another thread of it), and closes the ring (`c`); a client asks and waits (`q`).
class RequestScene final : public Scene {
 public:
  std::span<std::byte> memory() override {
    const std::size_t slots_left_out =
        sizeof(RequestRing::Slot) * (RequestRing::kSlotsMax - kSlots);
    const std::span<std::byte> all = bytes_of(shared_);
    return all.first(all.size() - slots_left_out);
  }
  void act(unsigned actor, char operation) override {
    switch (operation) {
      case 's':
        return serve();
      case 'x':
        return sweep();
      case 'c':
        return ring().close();
      default:
        return ask(actor);
    }
  }
  void finish(unsigned actor) override { shared_.is_over |= actor == 0; }
  void bury(unsigned actor) override {
    ++shared_.deaths;
    owners().advance(slot_of(actor));
  }
  void settle() override {
    if (!owners().has_owner(kService)) {
      (void)owners().succeed(kService);
      (void)ring().return_taken();
    }
    // Once after a death: what the dead leave later is not its business.
    if (shared_.deaths_swept != shared_.deaths) sweep();
    serve();
    require(ring().used_slots() == 0, "a slot is left to nobody");
  }

 private:
  static constexpr std::uint32_t kSlots = 2;
  static constexpr unsigned kQuestions = 32;
  struct Shared {
    Generations generations;
    std::array<std::uint8_t, kQuestions> answers{};
    std::uint32_t asked = 0;
    bool is_over = false;  // no service works any more
    std::uint32_t deaths = 0;
    std::uint32_t deaths_swept = 0;
    RequestRing::Table table{};  // last: most of its slots are not used
  };
  OwnerTable owners() { return shared_.generations.table(); }
  RequestRing ring() { return RequestRing(&shared_.table, kSlots, kService); }
  static std::uint64_t check_of(std::uint64_t question) { return question * 7 + 3; }

  void sweep() {
    const std::uint32_t deaths = shared_.deaths;
    (void)ring().release_dead(owners());
    shared_.deaths_swept = deaths;
  }
  void serve() {
    ring().take(owners(), [this](const RequestRing::Taken& taken) {
      const auto [question, check] = taken.question;
      require(check == check_of(question), "a question is taken that is not whole");
      const bool is_repeated = owners().current(kService).generation() > 0;
      require(++shared_.answers[question] == 1 || is_repeated, "a question is taken twice");
      ring().answer(taken.place, static_cast<std::int32_t>(question + 100), owners());
    });
  }
  void ask(unsigned actor) {
    const std::uint64_t question = ++shared_.asked;
    const Owner self(slot_of(actor), 0);
    const auto place = ring().ask(self, {question, check_of(question)});
    if (!place) return;
    std::int32_t result = 0;
    RequestRing::Waited waited;
    do {
      waited = ring().await(*place, owners(), 1, &result);
    } while (waited == RequestRing::Waited::kStill && !shared_.is_over);
    const bool is_right = result == static_cast<std::int32_t>(question + 100);
    if (waited == RequestRing::Waited::kAnswered) return require(is_right, "another's answer");
    if (waited == RequestRing::Waited::kStill) return ring().withdraw(*place);
    require(!owners().has_owner(kService), "the slot of a living client is taken away");
  }

  Shared shared_;
};

TEST(RequestOrders, AServiceAndAClient) {
  std::vector<std::vector<std::string>> groups;
  for (const std::string& service : all_programs("sxc", 3)) groups.push_back({service, "qqq"});
  expect_each<RequestScene>(groups, {.deaths_max = 2});
}

TEST(RequestOrders, AServiceAndTwoClients) {
  expect_each<RequestScene>({{"ss", "q", "q"}, {"sx", "q", "q"}, {"sc", "q", "q"}},
                            {.deaths_max = 1});
}

TEST(RequestOrders, AServiceThatSweepsMeanwhile) {
  expect_each<RequestScene>({{"ss", "q", "x"}, {"ss", "qq", "x"}}, {.deaths_max = 1});
}

TEST(RequestOrders, MoreByChance) {
  expect_some<RequestScene>({"sssxc", "q", "q", "qqx"}, 6, 20'000, 3);
}

// Operations: the service offers the slot (`o`), withdraws the offer (`w`) and reads what clients
// have sent (`g`); a client takes the slot (`t`).
class OfferScene final : public Scene {
 public:
  std::span<std::byte> memory() override { return bytes_of(shared_); }
  void act(unsigned actor, char operation) override {
    switch (operation) {
      case 'o':
        if (shared_.offered != 0) return;
        shared_.offered = ++shared_.number;
        return shared_.offer.open(shared_.offered);
      case 'w':
        if (shared_.offered != 0 && shared_.offer.withdraw(shared_.offered)) shared_.offered = 0;
        return;
      case 'g':
        return read_greetings();
      default:
        return take(actor);
    }
  }
  void bury(unsigned) override {}
  void settle() override {
    read_greetings();
    for (std::uint32_t number = 1; number <= shared_.number; ++number) {
      const std::uint32_t client = shared_.believed[number];
      require(client == 0 || client == shared_.known[number], "a client's slot is another's");
    }
  }

 private:
  static constexpr std::uint32_t kNumbers = 16;
  struct Shared {
    SlotOffer offer{};
    std::uint32_t number = 0;
    std::uint32_t offered = 0;  // the number of the offer that is open or taken
    std::atomic<std::uint32_t> sent;
    std::uint32_t read = 0;
    std::array<SlotClaim, 2 * kNumbers> greetings{};
    std::array<std::uint32_t, kNumbers> believed{};  // the client that holds the slot by its word
    std::array<std::uint32_t, kNumbers> known{};     // the client that the service gave it to
  };

  void take(unsigned actor) {
    const std::uint32_t number = shared_.offer.number_if_open();
    if (number == 0) return;
    const SlotClaim claim{1, number, actor};
    shared_.greetings[shared_.sent.fetch_add(1)] = claim;
    if (!shared_.offer.take(claim)) return;
    std::uint32_t& holder = shared_.believed[number];
    require(holder == 0 || holder == actor, "two clients have the slot");
    holder = actor;
  }
  // The slot of one who has gone is free again.
  void read_greetings() {
    for (; shared_.read != shared_.sent.load(); ++shared_.read) {
      const SlotClaim claim = shared_.greetings[shared_.read];
      if (claim.number != shared_.offered || !shared_.offer.take(claim)) continue;
      shared_.known[claim.number] = claim.token;
      shared_.offered = 0;
      shared_.offer.clear();
    }
  }

  Shared shared_;
};

TEST(OfferOrders, AServiceAndAClient) {
  std::vector<std::vector<std::string>> groups;
  for (const std::string& service : all_programs("owg", 3))
    groups.push_back({"o" + service, "ttt"});
  expect_each<OfferScene>(groups, {.deaths_max = 2});
}

TEST(OfferOrders, AServiceAndTwoClients) {
  expect_each<OfferScene>({{"owo", "t", "t"}, {"ogo", "tt", "t"}, {"ogow", "t", "tt"}},
                          {.deaths_max = 1});
}

TEST(OfferOrders, MoreByChance) { expect_some<OfferScene>({"owg", "t", "t", "t"}, 8, 20'000, 3); }

// Operations: the service reads up to the end (`r`); the threads of one process put an event (`p`),
// or so many that the ring is gone around but for one place (`j`).
class EventScene final : public Scene {
 public:
  EventScene() {
    head().poke(kFirst);
    CAIRN_CHECK(shared_->ring.head() == kFirst);
    shared_->cursor = kFirst;
  }
  std::span<std::byte> memory() override {
    const std::span<std::byte> all = bytes_of(*shared_);
    return all.first(all.size() - 48 * (EventRing::kEntries - kPlaces));
  }
  void act(unsigned actor, char operation) override {
    switch (operation) {
      case 'r':
        return read(false);
      case 'j':
        shared_->went_around = true;
        return void(head().fetch_add(EventRing::kEntries - 1));
      default: {
        const std::uint32_t number = ++shared_->told;
        (void)shared_->ring.put(event_of(number, actor));
        shared_->has_told[number] = true;
      }
    }
  }
  void bury(unsigned) override {}
  void settle() override {
    read(true);
    for (std::uint32_t number = 1; number <= shared_->told; ++number) {
      const bool is_lost = shared_->has_told[number] && shared_->heard[number] == 0;
      require(!is_lost || shared_->went_around, "an event is lost");
    }
  }

 private:
  // Where it begins, and how many of its places can come to be used.
  static constexpr std::uint32_t kFirst = 12;
  static constexpr std::uint32_t kPlaces = 24;
  struct Shared {
    std::uint32_t told = 0;
    std::uint32_t cursor = 0;
    bool went_around = false;
    std::array<bool, 32> has_told{};
    std::array<std::uint8_t, 32> heard{};
    EventRing ring{};  // last: most of its places are not used
  };
  // The ring's second word.
  std::atomic<std::uint32_t>& head() {
    return *(reinterpret_cast<std::atomic<std::uint32_t>*>(&shared_->ring) + 1);
  }
  static AccessEvent event_of(std::uint32_t number, unsigned actor) {
    AccessEvent event;
    event.offset = number;
    event.cycles = number * 3;
    event.object = ObjectIndex{number * 5};
    event.length = number * 7;
    event.stream = DescriptionIndex{number * 11};
    event.descriptor = static_cast<std::int32_t>(number * 13);
    event.owner = Owner(slot_of(actor), 0);
    event.kind = AccessKind::kWrite;
    return event;
  }
  void read(bool is_last) {
    std::uint32_t& place = shared_->cursor;
    for (const std::uint32_t end = shared_->ring.head(); place != end; ++place) {
      if (end - place > EventRing::kEntries) place = end - EventRing::kEntries;
      if (place % EventRing::kEntries >= kPlaces) {  // those of threads that are not in the scene
        place += EventRing::kEntries - place % EventRing::kEntries - 1;
        continue;
      }
      AccessEvent event;
      const EventRing::Got got = shared_->ring.read(place, &event);
      if (got == EventRing::Got::kUnfinished && !is_last) break;
      if (got == EventRing::Got::kEvent) hear(event);
    }
  }
  void hear(const AccessEvent& event) {
    const auto number = static_cast<std::uint32_t>(event.offset);
    require(number >= 1 && number <= shared_->told, "an event that nobody told");
    const AccessEvent meant = event_of(number, 1);
    const bool is_whole = event.cycles == meant.cycles && event.object == meant.object &&
                          event.length == meant.length && event.stream == meant.stream &&
                          event.descriptor == meant.descriptor && event.kind == meant.kind;
    require(is_whole, "a mixture of two events");
    require(++shared_->heard[number] == 1, "an event is heard twice");
  }

  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
};

TEST(EventOrders, AReaderAndAWriter) {
  expect_each<EventScene>({{"rrr", "ppp"}, {"rrr", "pjp"}, {"rrr", "jpp"}}, {.deaths_max = 1});
}

TEST(EventOrders, WritersWhoLapEachOther) {
  expect_each<EventScene>({{"r", "p", "pp"}, {"r", "p", "jp"}}, {.deaths_max = 1});
}

TEST(EventOrders, MoreByChance) { expect_some<EventScene>({"r", "ppj", "ppj"}, 5, 20'000); }

}  // namespace
}  // namespace cairn::stepping
