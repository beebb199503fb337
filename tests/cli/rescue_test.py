#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn rescue` on directories as a rescue leaves them: its exit status says whether all is at its place, and what has
got a file's name since is neither waited for nor written to.

What a rescue really leaves is in tests/faults/rescues.py.
"""
import os
import unittest

from command_test import CommandTest

HEAD = "# cairn rescue list 1: offset length saved-in size mtime-ns stored-mtime-ns device inode path why\n"
NOT_STORED = 74
BYTES = b"new!" * 1000
MTIME_NS = 1_700_000_000_000_000_000


class RescueTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.saved = os.path.join(self.root, "saved")
        os.mkdir(self.saved, 0o700)
        self.lines = []

    def file(self, name):
        return os.path.join(self.work, name)

    def saved_file(self, number):
        return os.path.join(self.saved, str(number))

    def save(self, number, name):
        """A file in the store with old bytes, whose new ones are saved."""
        with open(self.file(name), "wb") as out:
            out.write(b"old")
        with open(self.saved_file(number), "wb") as out:
            out.write(BYTES)
        status = os.stat(self.file(name))
        self.add(number, self.file(name), len(BYTES), status)

    def add(self, saved, path, length, status=None):
        stored, inode = (status.st_mtime_ns, status.st_ino) if status else (0, 1)
        self.lines.append(f"0\t{length}\t{saved}\t{len(BYTES)}\t{MTIME_NS}\t{stored}\t1\t{inode}\t{path}\tfull\n")
        self.write_list()

    def write_list(self, more=""):
        with open(os.path.join(self.saved, "list"), "w", encoding="utf-8") as out:
            out.write(HEAD + "".join(self.lines) + more)
        os.chmod(os.path.join(self.saved, "list"), 0o600)

    def rescue(self, status, *options, says=()):
        said = self.cairn("rescue", *options, self.saved, check=status).stderr
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, said)
        return said

    def expect_written(self, name):
        with open(self.file(name), "rb") as written:
            self.assertEqual(written.read(), BYTES)
        self.assertEqual(os.stat(self.file(name)).st_mtime_ns, MTIME_NS)

    def expect_old(self, path):
        with open(path, "rb") as found:
            self.assertEqual(found.read(), b"old")


class ExitStatus(RescueTest):
    def test_all_is_written(self):
        self.save(1, "a")
        self.save(2, "b")
        self.rescue(0, "--dry-run", says="would be written")
        self.expect_old(self.file("a"))
        self.rescue(0)
        self.expect_written("a")
        self.expect_written("b")
        self.assertFalse(os.path.exists(self.saved))

    def test_lost_bytes_are_not_stored(self):
        self.save(1, "a")
        self.add("-", "/s/lost", 123 << 10)
        for options in (["--dry-run"], [], []):  # the list stays, and so does the answer
            said = self.rescue(NOT_STORED, *options, says=["/s/lost: 123 KiB are lost: full", f"remove {self.saved}"])
        self.assertNotIn("work/a", said)
        self.expect_written("a")

    def test_a_lost_size_is_not_stored(self):
        self.add("-", "/s/lost", 0)
        self.rescue(NOT_STORED, says="/s/lost: size and time are lost")

    def test_what_is_left_is_not_stored(self):
        self.save(1, "a")
        self.save(2, "b")
        os.utime(self.file("b"), ns=(0, 1))
        self.rescue(NOT_STORED, "--dry-run", says="would be left: it was changed since")
        self.rescue(NOT_STORED, says=f"are left in {self.saved_file(2)}: it was changed since")
        self.expect_written("a")

    def test_saved_bytes_that_are_missing_are_not_stored(self):
        self.save(1, "a")
        os.unlink(self.saved_file(1))
        self.rescue(NOT_STORED, "--dry-run", says=self.saved_file(1))
        self.rescue(NOT_STORED, says=f"cannot be read from {self.saved_file(1)}")
        self.assertTrue(os.path.exists(os.path.join(self.saved, "list")))

    def test_a_call_before_has_written_and_removed_it(self):
        self.save(1, "a")
        os.unlink(self.saved_file(1))
        self.write_list("begun\t1\t0\n")
        self.rescue(0)
        self.assertFalse(os.path.exists(self.saved))

    def test_a_file_without_a_line_is_not_stored(self):
        self.save(1, "a")
        with open(self.saved_file(2), "wb") as out:
            out.write(b"whose")
        self.rescue(NOT_STORED, says=f"{self.saved_file(2)}: the list does not say whose it is")
        self.expect_written("a")
        os.unlink(self.saved_file(2))
        self.rescue(0)

    def test_a_last_line_without_its_end(self):
        self.save(1, "a")
        self.lines[-1] = self.lines[-1][:-3]
        self.write_list()
        os.utime(self.file("a"), ns=(0, 1))
        self.rescue(NOT_STORED)
        with open(os.path.join(self.saved, "list"), "a", encoding="utf-8") as out:
            out.write("begun\t1\t0\n")  # as a call does that is killed then
        self.rescue(0)
        self.expect_written("a")

    def test_what_is_no_list_is_refused(self):
        self.refused("rescue", self.saved, says="name a directory that a rescue has made")
        for text in ("", "# cairn rescue list 2\n", HEAD + "no line\n", HEAD + "begun\t1\t0\n",
                     HEAD + f"0\t9\tlist\t9\t0\t0\t1\t1\t{self.work}/a\tfull\n"):
            with open(os.path.join(self.saved, "list"), "w", encoding="utf-8") as out:
                out.write(text)
            self.refused("rescue", self.saved, says=f"{self.saved}/list")


class OtherThings(RescueTest):
    """Something that is no regular file has the name of the file by now."""

    def expect_refused(self, what):
        for options, word in ((["--dry-run"], "would be left"), ([], "are left in")):
            self.rescue(NOT_STORED, *options, says=[self.file("a"), word, f"{what} has its name", "move that away"])
        self.assertTrue(os.path.exists(self.saved_file(1)))

    def put_back(self):
        """As the message says."""
        os.unlink(self.file("a"))
        os.rename(self.file("elsewhere"), self.file("a"))
        self.rescue(0)
        self.expect_written("a")

    def test_a_fifo_is_not_waited_for(self):
        self.save(1, "a")
        os.rename(self.file("a"), self.file("elsewhere"))
        os.mkfifo(self.file("a"))
        self.expect_refused("a FIFO")
        self.put_back()

    def test_a_symbolic_link_is_not_followed(self):
        self.save(1, "a")
        os.rename(self.file("a"), self.file("elsewhere"))
        os.symlink("elsewhere", self.file("a"))  # it is the file of the list, that inode
        self.expect_refused("a symbolic link")
        self.expect_old(self.file("elsewhere"))
        self.put_back()

    def test_a_directory(self):
        self.save(1, "a")
        os.rename(self.file("a"), self.file("elsewhere"))
        os.mkdir(self.file("a"))
        self.expect_refused("a directory")

    def test_a_fifo_in_the_rescue_directory_is_not_waited_for(self):
        self.save(1, "a")
        os.unlink(self.saved_file(1))
        os.mkfifo(self.saved_file(1))
        self.rescue(NOT_STORED, says=f"{self.saved_file(1)}: no regular file")
        os.unlink(os.path.join(self.saved, "list"))
        os.mkfifo(os.path.join(self.saved, "list"), 0o600)
        self.refused("rescue", self.saved, says=f"{self.saved}/list")


if __name__ == "__main__":
    unittest.main()
