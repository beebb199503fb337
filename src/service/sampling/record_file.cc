// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

Status write_record(const std::string& path, const nlohmann::json& timeline) {
  CAIRN_CHECK(!path.empty());
  const nlohmann::json record = {
      {"schema", "cairn-run-1"}, {"ended", false}, {"timeline", timeline}};
  const std::string text =
      record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const std::string fresh = path + ".new";
  UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return Status::from_errno(errno, fresh);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::write(file.get(), text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    done += static_cast<std::size_t>(put);
  }
  const int error = errno;
  if (done == text.size() && ::rename(fresh.c_str(), path.c_str()) == 0) return Status::ok();
  (void)::unlink(fresh.c_str());
  return Status::from_errno(done == text.size() ? errno : error, path);
}

}  // namespace cairn::node
