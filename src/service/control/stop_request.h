// SPDX-License-Identifier: Apache-2.0
// The commands that end the service, as the service hears of them.
//
// Thread safety: all functions from any thread. Ownership: the service implements it.
#pragma once

namespace cairn::node {

class StopRequest {
 public:
  // Returns at once; the service ends after the answer was sent.
  virtual void request_stop() = 0;
  // The service ends when no client and no run is left and all is stored.
  virtual void request_stop_when_unused() = 0;
  // A run has ended: the last, perhaps, that such an end waits for.
  virtual void note_run_ended() = 0;

 protected:
  ~StopRequest() = default;
};

}  // namespace cairn::node
