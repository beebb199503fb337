// SPDX-License-Identifier: Apache-2.0
// A package needs a source; this one has only a dependency.
