// SPDX-License-Identifier: Apache-2.0
//
// `cairn declare FILE`: in which order a training loop will read its data, and in which chunks
// programs will read datasets, told to a node that is up.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/array_hint_option.h"
#include "cli/commands/learning_commands.h"
#include "cli/node/control_client.h"
#include "cli/node/json_fields.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"
#include "service/learning/declared_orders.h"

namespace cairn::cli {
namespace {

// A job that writes them under Cairn has them in the tiers, where the node itself does not look.
void store(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int error = descriptor < 0 || ::fsync(descriptor) != 0 ? errno : 0;
  if (descriptor >= 0) ::close(descriptor);
  // A file system that cannot sync has nothing to store.
  if (error != 0 && error != EINVAL && error != EROFS)
    throw Failure(path + " cannot be stored: " + std::strerror(error));
}

// The file of declarations. The command reads it too, so that a mistake reaches the user who typed
// it.
class Orders {
 public:
  explicit Orders(const std::string& path) : path_(absolute_path(path)) {
    const auto orders = node::DeclaredOrders::load(path_, {});
    if (!orders)
      throw Failure(orders.status().message(), "docs/orders.md says what can be declared");
    if (orders->is_empty()) throw Failure(path + " declares nothing", "write a declaration a line");
    for (const std::string& source : orders->sources()) store(source);
    fingerprint_ = orders->fingerprint();
  }

  void declare(const std::string& node) const {
    ControlClient client(select_node(node));
    const Json reply = client.request(
        {{"command", "declare"}, {"path", path_}, {"fingerprint", std::to_string(fingerprint_)}});
    const uint64_t orders = unsigned_field(reply, "orders");
    print(fmt::format("declared: {} {}, for files that are opened from now on\n", orders,
                      orders == 1 ? "order" : "orders"));
  }

 private:
  std::string path_;
  uint64_t fingerprint_ = 0;
};

void declare_arrays(const std::vector<std::string>& hints, const std::string& node) {
  ControlClient client(select_node(node));
  (void)client.request({{"command", "declare-arrays"}, {"arrays", hints}});
  print(fmt::format("declared: {} {}, for datasets that are read from now on\n", hints.size(),
                    hints.size() == 1 ? "array" : "arrays"));
}

}  // namespace

int command_declare(const Arguments& arguments) {
  CLI::App app(
      "Tells the node in which order programs will read the files that they open from now on.",
      "cairn declare");
  std::string path;
  std::string node;
  std::vector<std::string> arrays;
  app.add_option("path", path, "A file of declarations (docs/orders.md)")->type_name("PATH");
  add_list(app, "--array", arrays,
           "A dataset is read in chunks with ghost zones: 'FILE:/DATASET chunk=[N,...] "
           "ghost=[N,...]'; repeatable",
           "HINT");
  add_text(app, "--node", node, kNodeHelp, "NAME");
  app.footer(
      "Example, in the script of a job, before the training begins:\n"
      "  echo '/data/train.bin torch-random seed=42 items=60000 epochs=10 item-bytes=110K' "
      "> orders\n"
      "  cairn declare orders");
  parse(app, arguments);
  if (path.empty() && arrays.empty())
    throw Failure("nothing is declared", "name a file of declarations, or give --array");
  // All is read before the node hears of any of it.
  std::optional<Orders> orders;
  if (!path.empty()) orders.emplace(path);
  const std::vector<std::string> hints = take_array_hints(arrays);
  if (hints.empty() && !arrays.empty())
    throw Failure("nothing is declared: no --array can be used", "docs/arrays.md has examples");
  if (!hints.empty()) declare_arrays(hints, node);
  if (orders) orders->declare(node);
  return kExitOk;
}

}  // namespace cairn::cli
