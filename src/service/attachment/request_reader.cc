// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/request_reader.h"

#include <errno.h>
#include <pthread.h>

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "service/attachment/client_message.h"

namespace cairn::node {
namespace {

constexpr int kSleepMs = 3'600'000;

template <typename... Cases>
struct Choice : Cases... {
  using Cases::operator()...;
};

}  // namespace

void RequestReader::start() {
  CAIRN_CHECK(!thread_.joinable());
  thread_ = std::thread([this] { run(); });
}

void RequestReader::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  memory_.requests().close();
  thread_.join();
}

void RequestReader::run() {
  pthread_setname_np(pthread_self(), "cairn-requests");
  const RequestRing& ring = memory_.requests();
  while (!stopping_.load()) {
    const std::uint32_t heard = ring.heard();
    take();
    if (!stopping_.load()) ring.sleep(heard, kSleepMs);
  }
  // The ring is closed: these are the last.
  take();
}

void RequestReader::take() {
  memory_.requests().take(memory_.owners(),
                          [this](const RequestRing::Taken& taken) { act(taken); });
}

void RequestReader::act(const RequestRing::Taken& taken) {
  // Only a stray store, or a client that has given the slot up, makes a question of it meanwhile.
  if (!at_work_->begin(taken.place.slot))
    return memory_.requests().answer(taken.place, -EIO, memory_.owners());
  Asker asker(memory_, taken.place, at_work_);
  const auto answered_by = [this, &asker](const auto& message) {
    events_.on_question(std::move(asker), message);
  };
  std::visit(Choice{[&](const message::Malformed& what) {
                      if (!std::exchange(has_complained_, true))
                        events_.log(std::string("a process has asked for ") + what.reason +
                                    ": left out, as all that follows of this kind");
                    },
                    answered_by},
             decode(taken.question, memory_.objects()));
}

}  // namespace cairn::node
