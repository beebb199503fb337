# SPDX-License-Identifier: Apache-2.0
# What is stored must be a sound repository with a clean working tree.
set -e
for repository in work clone bare.git; do git -C "$repository" fsck --full --strict; done
git -C work diff --quiet HEAD
git -C clone diff --quiet HEAD
