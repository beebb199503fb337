// SPDX-License-Identifier: Apache-2.0
// What the service may not do when it stores what programs wrote: keep set-id bits that a write of
// theirs would have taken away.
//
// Thread safety: called once at start, before the first thread.
#pragma once

namespace cairn::node {

// Gives CAP_FSETID up, which a service of root has: a write by it takes S_ISUID and S_ISGID away as
// that of any user does. The bits that a program's own write may keep are not lost so: such a file
// has nothing in the buffer that is still to be stored (kObjectGuarded). Returns 0 or an errno.
int give_up_set_id_rights();

}  // namespace cairn::node
