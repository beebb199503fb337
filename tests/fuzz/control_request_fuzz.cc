// SPDX-License-Identifier: Apache-2.0
// Lines on control.sock as any program of the user may write them, under all commands with their
// registries; the connection's end follows each input. A request is answered or refused, and what
// a connection has begun ends with it.
//
// Names in requests are moved into a directory of the target's own: a node works with its user's
// rights, and so does this. The peer is gone while it is answered, so that nothing waits for it.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <shared_mutex>
#include <string>

#include "base/check.h"
#include "memory/tiers/testing/test_memory.h"
#include "service/attachment/audit.h"
#include "service/control/control_commands.h"
#include "service/control/testing/test_registries.h"
#include "service/durability/node_durability.h"
#include "service/node/array_parts.h"
#include "service/node/learners.h"

namespace {

using namespace cairn;
using namespace cairn::node;

class NoStop final : public StopRequest {
 public:
  void request_stop() override {}
  void request_stop_when_unused() override {}
  void note_run_ended() override {}
};

std::string make_root() {
  char path[] = "/tmp/cairn-fuzz-control-XXXXXX";
  CAIRN_CHECK(::mkdtemp(path) != nullptr);
  CAIRN_CHECK(::chdir(path) == 0);
  return path;
}

struct Scene {
  Scene()
      : root(make_root()),
        memory(cairn::testing::make_memory(cairn::testing::memory_only(8 * cairn::testing::kMiB))),
        budget(memory),
        rows(std::move(KeptMemory::create().value())),
        clients(memory, budget, rows),
        text(rows),
        registries(memory, clients, &text, ScratchBegin::kEmpty, root + "/scratch"),
        unserved(memory, registries.flusher, clients.service(), rows),
        audit(
            memory, clients, unserved, [] { return true; },
            [this] { return Audit::Stillness(no_fetches); }),
        reaper(memory, clients, audit, [](const SweepCounts&) {}),
        directories(registries.config, registries.runs),
        learners({registries.config, memory, clients, registries.placement, registries.files,
                  directories}),
        report(registries.config, memory, learners.events(), nullptr, nullptr),
        durability(memory, registries.files, registries.flusher, log),
        drain(memory, registries.files, registries.flusher, durability),
        gatherer({memory, clients.service(), registries.files, registries.flusher, no_fetches, 25}),
        arrays(registries.config, memory, gatherer, registries.kept),
        status(StatusSources{registries.config, memory, clients, registries.runs,
                             registries.accounts, registries.files, registries.flusher, unserved,
                             reaper, report, 0, durability, nullptr, &arrays.report}),
        explanation(registries.config, memory, registries.placement, registries.rules, directories),
        stager(memory, clients.service(), registries.flusher, directories, no_fetches),
        runs(RunKeepers{registries.config, memory, registries.runs, clients, registries.accounts,
                        registries.rules, registries.scratch, registries.flusher, reaper, drain,
                        status, stop, registries.kept, &arrays.book, &arrays.hints}),
        files(memory, registries.accounts, registries.rules, stager, registries.kept),
        learning(LearningParts{memory, learners.events(), learners.declarations(), learners.heat(),
                               learners.recorder(), registries.kept}),
        commands(ControlParts{registries.config, memory, status, explanation, drain, runs, files,
                              learning, stop, &arrays.commands}) {
    std::filesystem::create_directory(root + "/scratch");
    budget.measure();
    registries.config.buffer_directories = {root};
    registries.flusher.start();
    reaper.start();
  }
  const std::string root;
  NodeMemory memory;
  DescriptorBudget budget;
  KeptMemory rows;
  ClientTable clients;
  KeptText text;
  TestRegistries registries;
  UnservedFiles unserved;
  std::shared_mutex no_fetches;
  Audit audit;
  Reaper reaper;
  BufferedDirectories directories;
  Learners learners;
  LearningReport report;
  NodeLog log;
  NodeDurability durability;
  DrainRequest drain;
  ChunkGatherer gatherer;  // does not run
  ArrayParts arrays;
  StatusReport status;
  Explanation explanation;
  Stager stager;
  NoStop stop;
  RunCommands runs;
  FileCommands files;
  LearningCommands learning;
  ControlCommands commands;
};

// As deep as a value may be here, and more.
Json below_root(const Json& value, const std::string& root) {
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    if (text.find("..") != std::string::npos) return "dots";
    return !text.empty() && text.front() == '/' && !text.starts_with(root) ? root + text : text;
  }
  Json moved = value;
  if (value.is_structured()) {
    for (auto entry = moved.begin(); entry != moved.end(); ++entry)
      *entry = below_root(*entry, root);
  }
  return moved;
}

void answer(Scene& scene, std::uint64_t session, const std::string& line) {
  // As ControlServer::answer() does it.
  const Json request = Json::parse(line, nullptr, false);
  if (!request.is_object()) return;
  int sockets[2];
  CAIRN_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
  ::close(sockets[1]);
  ControlPeer peer(sockets[0], session);
  Json safe = below_root(request, scene.root);
  safe["timeout_seconds"] = 0.001;
  try {
    scene.commands.on_request(peer, session, safe);
  } catch (const Json::exception&) {
  }
  ::close(sockets[0]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Scene* const scene = new Scene;  // its threads live as long as the process
  static std::uint64_t session = 0;
  ++session;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    answer(*scene, session, text.substr(begin, end - begin));
    begin = end + 1;
  }
  scene->commands.on_close(session);
  CAIRN_CHECK(scene->registries.runs.all().empty());
  return 0;
}
