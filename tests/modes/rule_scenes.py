# SPDX-License-Identifier: Apache-2.0
"""Rules for paths, runs and parts of files, and files that only some names of are buffered."""

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402
from puppet import PATTERN_BYTES, has_any_of, holds, pattern, soon  # noqa: E402
from scene import CREATE, Check, Node, stays_away  # noqa: E402


def rules_by_path():
    schema = """<rules>
  <rule name="logs"><path>*.log</path><never-buffer>true</never-buffer></rule>
  <rule name="results"><path>out/*</path><mode>persistent-sync</mode></rule>
  <rule name="steps"><path>step-{n}.dat</path><trigger>on-exit</trigger></rule>
</rules>
"""
    work = under_cairn.work_directory("modes-schema")
    (work / "rules.xml").write_text(schema)
    with Check("rules", "--schema", work / "rules.xml", config="flush:\n  delay_ms: 1\n") as check:
        (check.directory / "out").mkdir()
        data = pattern(1)
        for name in ("a.log", "out/b"):
            check.puppet.call("pwrite", check.open(name), data, 0)
            assert holds(check.path(name), data), f"{name} is to be stored at once"
        check.puppet.call("pwrite", check.open("step-17.dat"), data, 0)
        check.puppet.call("pwrite", check.open("step-x.dat"), data, 0)
        assert soon(lambda: holds(check.path("step-x.dat"), data)), "no rule speaks of it"
        assert stays_away(check.path("step-17.dat"), data), "it is to wait for the end"
        check.end()
        assert holds(check.path("step-17.dat"), data)
    under_cairn.remove(work)


def rules_of_a_running_node():
    with Node() as node:
        puppet = node.puppet()
        before = puppet.call("open", str(node.directory / "x.bin"), CREATE)
        node.cairn("set", "--node", "n", "*.bin", "mode=persistent-sync")
        data = pattern(1)
        puppet.call("pwrite", before, data, 0)
        assert not holds(node.directory / "x.bin", data), "opened before the rule: nothing changes"
        after = puppet.call("open", str(node.directory / "y.bin"), CREATE)
        puppet.call("pwrite", after, data, 0)
        assert holds(node.directory / "y.bin", data), "opened after the rule"
        node.cairn("set", "--node", "n", node.directory / "y.bin", "mode=bypass")
        assert puppet.end() == 0, puppet.errors
        mistakes = (("mode=quick", "persistent-sync"), ("tier=tape", "tape"), ("policy=best", "max-bandwidth"),
                    ("mod=bypass", "mode"))
        for mistake, word in mistakes:
            said = node.cairn("set", "--node", "n", "*.bin", mistake, status=2)
            assert word in said, f"{mistake}: {said}"


def rules_of_one_run():
    with Node() as node:
        sync, plain = node.puppet("--mode", "persistent-sync"), node.puppet()
        data = pattern(1)
        for name, puppet in (("sync", sync), ("plain", plain)):
            puppet.call("pwrite", puppet.call("open", str(node.directory / name), CREATE), data, 0)
        assert holds(node.directory / "sync", data), "the run's own mode"
        assert not holds(node.directory / "plain", data), "another run's mode is not its"
        assert sync.end() == 0 and plain.end() == 0


def rules_place_in_tiers():
    with Node() as node:
        node.cairn("set", "--node", "n", "*.low", "tier=tier1")
        puppet = node.puppet()
        data = pattern(1)
        for name in ("a.low", "b.high"):
            puppet.call("pwrite", puppet.call("open", str(node.directory / name), CREATE), data, 0)
        assert set(node.tiers_of("a.low")) == {"tier1"}, node.tiers_of("a.low")
        assert set(node.tiers_of("b.high")) == {"ram"}, node.tiers_of("b.high")
        again = puppet.call("open", str(node.directory / "a.low"), os.O_RDWR)
        assert puppet.call("pread", again, len(data), 0) == data
        assert set(node.tiers_of("a.low")) == {"tier1"}, "a read does not move it out of its tier"
        assert puppet.end() == 0, puppet.errors
        assert holds(node.directory / "a.low", data)


def rules_for_parts():
    schema = """rules:
  - {name: head, path: "*.h5", offset: {end: 128K}, place: {tier: tier1, pin: true}}
  - {name: raw, path: "*.h5", offset: {begin: 256K, end: 320K}, never-buffer: true}
"""
    work = under_cairn.work_directory("modes-parts")
    (work / "rules.yaml").write_text(schema)
    (work / "cairn.yaml").write_text("flush:\n  delay_ms: 3600000\n")
    kib = 1 << 10
    with Node("--schema", work / "rules.yaml", "--config", work / "cairn.yaml") as node:
        def ranges():
            reply = json.loads(node.cairn("explain", "--node", "n", "--json", path))
            return [(part["begin"] // kib, part["end"] // kib, part["tier"]) for part in reply["ranges"]]
        path = node.directory / "a.h5"
        puppet = node.puppet()
        data = pattern(1, 512 * kib)
        file = puppet.call("open", str(path), CREATE)
        puppet.call("pwrite", file, data, 0)
        expected = [(0, 128, "tier1"), (128, 256, "ram"), (320, 512, "ram")]
        assert ranges() == expected, ranges()
        assert holds(path, data[256 * kib:320 * kib], 256 * kib), "a part that is never buffered is stored at once"
        assert not has_any_of(path, data[:128 * kib]) and not has_any_of(path, data[320 * kib:], 320 * kib)
        assert puppet.call("pread", file, 512 * kib, 0) == data
        assert ranges() == expected, f"a read moved it: {ranges()}"
        text = node.cairn("explain", "--node", "n", path)
        assert "bytes 0 to 131072: tier tier1: rule head" in text, text
        assert "bytes 262144 to 327680: mode bypass: rule raw" in text, text
        # More than the tiers have room for: what is pinned stays.
        other = puppet.call("open", str(node.directory / "other"), CREATE)
        for step in range(128):
            puppet.call("pwrite", other, data, step * 512 * kib)
            puppet.call("pwrite", other, data, (step + 128) * 512 * kib)
        assert ranges()[:1] == expected[:1], ranges()
        assert puppet.call("pread", file, 512 * kib, 0) == data
        assert puppet.end() == 0, puppet.errors
        assert holds(path, data), "not all of it is stored"
        for line in ("trigger: on-exit", "mode: scratch", "policy: hot-data"):
            (work / "wrong.yaml").write_text(f'rules:\n  - {{path: "*.h5", offset: {{end: 128K}}, {line}}}\n')
            said = node.cairn("schema", "check", work / "wrong.yaml", status=2)
            assert "holds for a whole file" in said, said
    under_cairn.remove(work)


def buffered_while_the_kernel_has_it():
    """One process has a file as the kernel's own, then another as a buffered one: both see each write."""
    with Node() as node:
        node.cairn("set", "--node", "n", "*.raw", "mode=bypass")
        first, second = node.puppet(), node.puppet()
        raw, plain = node.directory / "a.raw", node.directory / "a.dat"
        kernel = first.call("open", str(raw), CREATE)
        first.call("pwrite", kernel, pattern(1), 0)
        (node.directory / "nobody-opened.it").write_bytes(bytes(1000))
        for path, size in ((raw, PATTERN_BYTES), (node.directory / "nobody-opened.it", 1000)):
            assert json.loads(node.cairn("explain", "--node", "n", "--json", path))["size"] == size, path
        first.call("rename", str(raw), str(plain))
        buffered = second.call("open", str(plain), CREATE)
        assert second.call("pread", buffered, PATTERN_BYTES, 0) == pattern(1)
        for step in range(2, 5):
            second.call("pwrite", buffered, pattern(step), 0)
            assert first.call("pread", kernel, PATTERN_BYTES, 0) == pattern(step), "stale in the kernel's descriptor"
            first.call("pwrite", kernel, pattern(step + 10), 0)
            assert second.call("pread", buffered, PATTERN_BYTES, 0) == pattern(step + 10), "stale in the buffered one"
        assert not node.tiers_of("a.dat"), node.tiers_of("a.dat")
        assert first.end() == 0, first.errors

        def is_buffered():
            second.call("pwrite", buffered, pattern(20), 0)
            return node.tiers_of("a.dat")
        assert soon(is_buffered), "nobody bypasses it any more, and still not buffered"
        assert second.end() == 0, second.errors
        assert holds(plain, pattern(20))


def renamed_past_the_buffer(node, puppet):
    """A file that the puppet writes and has open as a buffered one, under a name that bypasses: descriptor and path."""
    node.cairn("set", "--node", "n", "*.raw", "mode=bypass")
    path, raw = node.directory / "a.dat", node.directory / "a.raw"
    buffered = puppet.call("open", str(path), CREATE)
    puppet.call("pwrite", buffered, pattern(1), 0)
    puppet.call("rename", str(path), str(raw))
    return buffered, raw


def cut_by_an_open_past_the_buffer():
    """open(O_RDONLY | O_TRUNC) by a rule past the buffer, of a file that the buffer still has to store."""
    with Node() as node:
        puppet = node.puppet()
        buffered, raw = renamed_past_the_buffer(node, puppet)
        puppet.call("close", buffered)
        cut = puppet.call("open", str(raw), os.O_RDONLY | os.O_TRUNC)
        assert puppet.call("size", cut) == 0, "as if it had not been cut"
        assert puppet.end() == 0, puppet.errors
        assert os.path.getsize(raw) == 0, "stored after it was cut"


def copy_within_what_is_buffered_under_one_name_only():
    """copy_file_range() within one file, of which one descriptor is buffered and the other the kernel's."""
    with Node() as node:
        puppet = node.puppet()
        buffered, raw = renamed_past_the_buffer(node, puppet)
        kernel = puppet.call("open", str(raw), os.O_RDWR)
        for source, target in ((kernel, buffered), (buffered, kernel)):
            try:
                done = puppet.call("copy", source, target, 65536, 4096, 8192)
            except AssertionError as refused:
                assert "Invalid argument" in str(refused), refused
            else:
                assert False, f"{done} bytes copied onto themselves"
            assert puppet.call("copy", source, target, 4096, 0, 100000) == 4096
        assert puppet.end() == 0, puppet.errors
        expected = bytearray(pattern(1))
        expected[100000:104096] = expected[:4096]
        assert holds(raw, bytes(expected))


def sendfile_to_what_is_not_buffered():
    with Node() as node:
        node.cairn("set", "--node", "n", "*.raw", "mode=bypass")
        puppet = node.puppet()
        source = puppet.call("open", str(node.directory / "a"), CREATE)
        puppet.call("pwrite", source, pattern(1), 0)
        target = puppet.call("open", str(node.directory / "b.raw"), CREATE)
        assert puppet.call("sendfile", target, source, 0, 5000) == 5000
        assert holds(node.directory / "b.raw", pattern(1)[:5000])
        appending = puppet.call("open", str(node.directory / "b.raw"), os.O_WRONLY | os.O_APPEND)
        answer = "nothing"
        try:
            puppet.call("sendfile", appending, source, 0, 5000)
        except AssertionError as refusal:
            answer = str(refusal)
        assert "Invalid argument" in answer, f"sendfile() to an appending file gives EINVAL, not {answer}"
        assert puppet.end() == 0, puppet.errors
