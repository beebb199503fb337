// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/state_directory.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

std::string record_text(const nlohmann::json& timeline) {
  const nlohmann::json record = {
      {"schema", "cairn-run-1"}, {"ended", false}, {"timeline", timeline}};
  return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Status write_record(const std::string& path, const std::string& text,
                    const std::function<bool()>& may_replace) {
  CAIRN_CHECK(!path.empty());
  const std::string fresh = path + ".new";
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  UniqueFd file(::open(fresh.c_str(), kFlags, 0600));
  if (!file && errno == ENOENT && make_directories(path.substr(0, path.rfind('/'))) == 0)
    file = UniqueFd(::open(fresh.c_str(), kFlags, 0600));
  if (!file) return Status::from_errno(errno, fresh);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::write(file.get(), text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    done += static_cast<std::size_t>(put);
  }
  int error = errno;
  if (done == text.size()) {
    const bool is_wanted = may_replace();
    if (is_wanted && ::rename(fresh.c_str(), path.c_str()) == 0) return Status::ok();
    error = is_wanted ? errno : 0;
  }
  (void)::unlink(fresh.c_str());
  return error == 0 ? Status::ok() : Status::from_errno(error, path);
}

}  // namespace cairn::node
