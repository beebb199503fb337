// SPDX-License-Identifier: Apache-2.0
#include "service/node/service_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <utility>

namespace cairn::node {
namespace {

class ServiceMemoryTest : public ::testing::Test {
 protected:
  ServiceMemoryTest() {
    config_.ram_capacity_bytes = 4 << 20;
    config_.clients_max = 8;
    config_.tiers.emplace_back();
    config_.tiers[0].directory = ::testing::TempDir();
    config_.tiers[0].capacity_bytes = 4 << 20;
  }

  // In a process of its own, because a successor closes what it does not know. Returns its status.
  static int in_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int count(KeptKind kind) const {
    int found = 0;
    for (int fd = 0; fd < 1024; ++fd)
      found += labels_.of(fd).kind == kind && ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return found;
  }
  bool has_all() const {
    return count(KeptKind::kControlMemory) == 1 && count(KeptKind::kDataMemory) == 1 &&
           count(KeptKind::kPool) == 1;
  }

  NodeConfig config_;
  KeptMemory kept_ = std::move(KeptMemory::create().value());
  KeptDescriptors labels_{kept_};
};

TEST_F(ServiceMemoryTest, IsTheSuccessorsToo) {
  EXPECT_EQ(in_child([this] {
              {
                auto memory = create_memory(config_, labels_);
                if (!memory || !has_all()) return 1;
                memory->service_board().detached.store(77);
                // The service dies: nobody closes anything.
                new NodeMemory(std::move(*memory));
              }
              Inheritance left(labels_);
              auto memory = inherit_memory(config_, left, labels_);
              if (!memory || memory->service_board().detached.load() != 77) return 2;
              return has_all() ? 0 : 3;
            }),
            0);
}

TEST_F(ServiceMemoryTest, StaysForTheNextServiceWhenItCannotBeMapped) {
  EXPECT_EQ(in_child([this] {
              auto memory = create_memory(config_, labels_);
              if (!memory) return 1;
              new NodeMemory(std::move(*memory));
              NodeConfig other = config_;
              other.ram_capacity_bytes *= 2;
              {
                Inheritance left(labels_);
                if (inherit_memory(other, left, labels_)) return 2;
              }
              if (!has_all()) return 3;
              Inheritance left(labels_);
              return inherit_memory(config_, left, labels_) ? 0 : 4;
            }),
            0);
}

}  // namespace
}  // namespace cairn::node
