#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn advise` as a user meets it: what it says of traces and of programs, what it writes, what it refuses."""
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import unittest

from command_test import CAIRN, CommandTest

BLOCK = 1 << 16
NETWORK = ("--tier", "none", "--what-if", "store=network")

READ_TWICE = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
for _ in range(int(sys.argv[2])):
    for at in range(128):
        os.pread(file, 65536, at * 37 % 128 * 65536)
"""


class Advise(CommandTest):
    def setUp(self):
        super().setUp()
        self.environment["XDG_STATE_HOME"] = os.path.join(self.root, "state")

    def trace(self, rows, name="job.csv"):
        """A trace of (seconds, write?, block, bytes) of one file."""
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("t,rank,file,op,off,len\n")
            file.writelines(f"{at:.6f},0,0,{int(writes)},{block * BLOCK},{size}\n" for at, writes, block, size in rows)
        return path

    def loop(self, blocks=2000, passes=5):
        order = [2 * block for block in range(blocks)]
        random.Random(1).shuffle(order)
        return self.trace([(0.001 * at, False, block, BLOCK) for at, block in enumerate(order * passes)], "loop.csv")

    def once(self):
        order = [16 * block for block in range(3000)]
        random.Random(1).shuffle(order)
        return self.trace([(0.001 * at, False, block, 4096) for at, block in enumerate(order)], "once.csv")

    def advise(self, *arguments, **options):
        return json.loads(self.cairn("advise", "--json", *arguments, check=0, **options).stdout)

    def test_the_next_run_says_how_good_the_advice_was(self):
        """The configuration carries what was foretold; a run with it is compared, one that fails is not."""
        path, data = os.path.join(self.root, "job.yaml"), self.root + "/input"
        with open(data, "wb") as file:
            file.write(os.urandom(128 * BLOCK))
        self.assertIn("No run has followed", self.cairn("advise", "--history", check=0).stdout)
        self.cairn("advise", "--trace", self.loop(), *NETWORK, "--write", path, check=0)
        run = ["run", "--config", path, "--ram", "64M", "--buffer", self.root, "--"]
        said = self.cairn(*run, sys.executable, "-c", READ_TWICE, data, "2", check=0).stderr
        self.assertRegex(said, r"foretold  .* of I/O time \(.* to .*\) by `cairn advise`")
        self.cairn(*run, sys.executable, "-c", f"open({data!r}, 'rb').read(); raise SystemExit(3)", check=3)
        history = json.loads(self.cairn("advise", "--history", "--json", check=0).stdout)
        good, bad = history["runs"]
        self.assertEqual((good["exit_status"], bad["exit_status"], history["compared"]), (0, 3, 1))
        self.assertGreater(good["measured_seconds"], 0)
        self.assertLess(good["low"], good["expected_seconds"])
        self.assertAlmostEqual(history["median_error"], abs(good["expected_seconds"] / good["measured_seconds"] - 1))
        self.assertIn("1 compared", self.cairn("advise", "--history", check=0).stdout)
        with open(os.path.join(self.environment["XDG_STATE_HOME"], "cairn/advice.jsonl"), encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # somebody who never lets go
            said = self.cairn(*run, sys.executable, "-c", READ_TWICE, data, "1", check=0).stderr
        self.assertIn("not kept, as the file of `cairn advise --history` cannot be written", said)
        self.assertIn("leave out", self.cairn("advise", "--history", "--trace", path, check=2).stderr)

    def test_repeated_reads_get_memory_for_what_they_read(self):
        answer = self.advise("--trace", self.loop(), *NETWORK)
        self.assertEqual(answer["verdict"], "helps")
        chosen = answer["candidates"][answer["chosen"]]
        self.assertGreaterEqual(chosen["ram_bytes"], 2000 * BLOCK)
        self.assertLess(chosen["ram_bytes"], 1.3 * 2000 * BLOCK)
        self.assertAlmostEqual(chosen["gain"]["share"], 0.8, delta=0.05)
        self.assertEqual(answer["sizes"]["working_set_bytes"], 2000 * BLOCK)
        self.assertLess(chosen["forecast"]["interval"]["low"], chosen["forecast"]["io_seconds"])
        text = self.cairn("advise", "--trace", self.loop(), *NETWORK, check=0).stdout
        self.assertTrue(text.startswith("Cairn helps with this: "), text)
        self.assertIn("\n* working set", text)
        self.assertIn("class default: network", text)

    def test_reads_of_everything_once_at_random_are_advised_against(self):
        path = os.path.join(self.root, "no.yaml")
        answer = self.advise("--trace", self.once(), "--write", path, *NETWORK)
        self.assertEqual((answer["verdict"], answer["refusal"]), ("do-not-use", "read-once"))
        self.assertTrue(answer["sentence"].startswith("Do not use Cairn for this: "))
        with open(path, encoding="utf-8") as file:
            self.assertIn("mode: bypass", file.read())
        self.cairn("run", "--config", path, "--", "true", check=0)

    def test_a_shuffle_of_large_requests_is_in_no_order(self):
        """A device reads the blocks of each request in order, but nobody can fetch them before the request."""
        order = [8 * request for request in range(400)]
        random.Random(1).shuffle(order)
        trace = self.trace([(0.02 * at, False, block, 8 * BLOCK) for at, block in enumerate(order)], "shuffle.csv")
        answer = self.advise("--trace", trace, *NETWORK)
        self.assertEqual((answer["verdict"], answer["refusal"]), ("do-not-use", "read-once"), answer["sentence"])
        reads = answer["workload"]["reads"]
        self.assertAlmostEqual(reads["sequential_share"], 7 / 8, delta=0.01)
        self.assertLess(reads["foreseen_share"], 0.01)
        for candidate in answer["candidates"]:
            self.assertGreater(candidate["forecast"]["io_seconds"], 0.9 * answer["without"]["io_seconds"])
        text = self.cairn("advise", "--trace", trace, *NETWORK, check=0).stdout
        self.assertIn("\n- 0 % of the reads are in order", text)

    def test_advice_against_cairn_is_checked_by_the_next_run_as_well(self):
        """In mode bypass nobody sees the I/O, so that the time of the whole run is compared."""
        path = os.path.join(self.root, "no.yaml")
        answer = self.advise("--trace", self.once(), "--write", path, *NETWORK)
        self.assertEqual(answer["verdict"], "do-not-use")
        foretold = answer["without"]["io_seconds"] + answer["workload"]["compute_seconds"]
        said = self.cairn("run", "--config", path, "--", sys.executable, "-c", "import time; time.sleep(0.3)",
                          check=0).stderr
        self.assertRegex(said, r"foretold  .* for the whole run \(.* to .*\) by `cairn advise`")
        [run] = json.loads(self.cairn("advise", "--history", "--json", check=0).stdout)["runs"]
        self.assertEqual(run["of"], "run")
        self.assertAlmostEqual(run["expected_seconds"], foretold, delta=0.01)
        self.assertGreater(run["measured_seconds"], 0.3)
        self.assertIn(", of the whole run", self.cairn("advise", "--history", check=0).stdout)

    def test_advice_against_cairn_agrees_with_what_would_help(self):
        order = [16 * block for block in range(3000)]
        random.Random(1).shuffle(order)
        trace = self.trace([(0.001 * at, at % 10 == 0, block, 4096) for at, block in enumerate(order)], "log.csv")
        answer = self.advise("--trace", trace, "--fsyncs", "3000", *NETWORK)
        self.assertEqual(answer["verdict"], "do-not-use")
        [tier] = [each for each in answer["improvements"] if each["what"] == "durable-tier"]
        self.assertLess(tier["saved_seconds"], answer["without"]["io_seconds"])
        share = round(100 * tier["saved_seconds"] / answer["without"]["io_seconds"])
        self.assertRegex(answer["sentence"], r"^Do not use Cairn for this as it is configured: .*\. With a durable "
                         rf"tier \(.*\) for fsyncs it would help: I/O takes about .* instead of .*, {share} % less\.$")
        plain = self.advise("--trace", trace, *NETWORK)
        self.assertTrue(plain["sentence"].startswith("Do not use Cairn for this: "), plain["sentence"])
        self.assertEqual([each for each in plain["improvements"] if "tier" in each["what"]], [])

    def train(self, seconds):
        """A journal as a training leaves it, of a device whose reads and writes take seconds(threads, size)."""
        state = os.path.join(self.root, "state", "cairn")
        if subprocess.run(["stat", "-f", "-c", "%T", self.work], capture_output=True, text=True,
                          check=True).stdout.strip() == "tmpfs":
            self.skipTest(self.work + " is in memory")
        self.cairn("profile", "--seconds", "0.4", "--space", "8M", self.work, check=0)
        with open(os.path.join(state, "profiles.json"), encoding="utf-8") as file:
            device = json.load(file)["profiles"][0]["device"]
        rough = {"latency": 1e-3, "queue_depth": 4, "thread_bandwidth": 1e8, "peak_bandwidth": 1e8, "knee": 1}
        plan = {"budget_seconds": 60, "space_bytes": 1 << 30, "request_bytes_min": 4096, "seed": 1, "reads": rough,
                "writes": rough}
        lines = [{"cairn_training": 1, "equation": 8, "device": device, "plan": plan}]
        numbers = random.Random(1)
        for index in range(120):
            threads, size = numbers.choice((1, 2, 4, 8)), numbers.choice((4096, 16384, 65536, 262144))
            requests = numbers.randrange(100, 2000)
            lines.append({"index": index, "access": "write" if index % 2 else "read", "threads": threads,
                          "request_bytes": size, "requests": requests, "address_range_bytes": 1 << 28,
                          "seconds": requests * seconds(threads, size) * numbers.uniform(0.97, 1.03), "rounds": 1,
                          "spread": 0.01, "busy": False})
        def plain(name):
            return "".join(letter if letter.isalnum() or letter in "._" else "_" for letter in name)
        path = os.path.join(state, f"training-{plain(device['host'])}-{plain(device['name'])}.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        os.chmod(path, 0o600)
        return path

    def test_a_trained_device_is_as_fast_as_its_model_says(self):
        path = self.train(lambda threads, size: 5e-3 * (1 / threads + 1 / 4) + size / 100e6 * (1 / threads + 1 / 4))
        here = ("--tier", "none", "--store", self.work, "--what-if", "page-cache=0")
        answer = self.advise("--trace", self.loop(), *here)
        without = answer["without"]
        self.assertAlmostEqual(without["io_seconds"], 10000 * 1.25 * (5e-3 + BLOCK / 100e6), delta=4)
        self.assertLess(without["interval"]["high"], 1.1 * without["io_seconds"])
        self.assertGreater(without["interval"]["low"], 0.9 * without["io_seconds"])
        assumed = " ".join(answer["assumptions"])
        self.assertRegex(assumed, r"Reads of the store are by its trained model, within a factor of 1\.0\d in nine of")
        [use] = [use for use in answer["trained"] if use["access"] == "read"]
        self.assertEqual((use["file"], use["model"], use["answered"]), (path, "physical", True))
        # What the training did not reach is as before it: all but the first read is in requests of 1 MiB.
        sequential = self.trace([(0.001 * at, False, at, BLOCK) for at in range(2000)], "sequential.csv")
        outside = self.advise("--trace", sequential, *here)
        self.assertRegex(" ".join(outside["assumptions"]), r"It does not reach .*requests of 1 MiB "
                         r"\(4 KiB to 256 KiB were trained\), so these are by the figures \(measured 2")
        other = self.advise("--trace", self.loop(), *NETWORK)
        self.assertEqual(other["trained"], [])
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"cairn_training": 2}\n')
        refused = self.cairn("advise", "--json", "--trace", sequential, *here, check=0)
        self.assertIn("warning: " + path + ": was written by another version", refused.stderr)
        os.remove(path)
        plain = self.advise("--trace", sequential, *here)
        self.assertAlmostEqual(plain["without"]["io_seconds"], outside["without"]["io_seconds"], delta=0.02)
        untrained = self.advise("--trace", self.loop(), *here)
        self.assertEqual(untrained["trained"], [])
        self.assertNotIn("trained model", " ".join(untrained["assumptions"]))

    def test_the_kernel_may_keep_as_much(self):
        answer = self.advise("--trace", self.loop(), "--tier", "none", "--what-if", "store=hdd,page-cache=1G")
        self.assertEqual(answer["refusal"], "kernel-cache")
        answer = self.advise("--trace", self.loop(), "--tier", "none", "--what-if", "store=hdd,page-cache=0")
        self.assertEqual(answer["verdict"], "helps")

    def test_fsyncs_of_a_program_are_counted(self):
        program = ("import os\nfile = os.open('log', os.O_CREAT | os.O_WRONLY)\n"
                   "for _ in range(7):\n    os.write(file, b'x' * 512)\n    os.fsync(file)\n")
        answer = self.advise("--tier", "none", "--", sys.executable, "-c", program)
        self.assertEqual(answer["workload"]["fsyncs"], 7)
        # By what they took in this run, which no figure of the device is above.
        self.assertGreater(answer["without"]["parts"]["fsyncs"], 0)
        answer = self.advise("--tier", "none", "--fsyncs", "3", "--", sys.executable, "-c", program)
        self.assertEqual(answer["workload"]["fsyncs"], 3)

    def test_the_written_configuration_runs(self):
        path = os.path.join(self.root, "job.yaml")
        self.cairn("advise", "--trace", self.loop(), "--write", path, *NETWORK, check=0)
        self.cairn("run", "--config", path, "--", "true", check=0)
        shown = json.loads(self.cairn("config", "show", "--json", "--config", path, check=0).stdout)
        ram = next(option for option in shown if option["name"] == "ram.capacity")
        self.assertIn(path, ram["source"])
        with open(path, encoding="utf-8") as file:
            before = file.read()
        self.refused("advise", "--trace", self.loop(), "--write", path, *NETWORK, says=[path, "already", "--force"])
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)
        self.cairn("advise", "--trace", self.loop(), "--write", path, "--force", *NETWORK, check=0)

    def test_a_durable_tier_stays_one_in_the_written_configuration(self):
        tier, path = os.path.join(self.root, "tier"), os.path.join(self.root, "tier.yaml")
        os.mkdir(tier)
        answer = self.advise("--trace", self.loop(), "--what-if", "store=network,ram=200M", "--write", path,
                             "--tier", f"{tier}:1G:durable")
        chosen = answer["candidates"][answer["chosen"]]
        self.assertEqual((chosen["tiers"][0]["directory"], chosen["durability"]), (tier, "node"))
        with open(path, encoding="utf-8") as file:
            self.assertIn("durable: true", file.read())
        self.cairn("config", "show", "--config", path, check=0)

    def test_no_more_memory_is_advised_than_may_be_used(self):
        answer = self.advise("--trace", self.loop(), "--ram", "16M", *NETWORK)
        self.assertEqual([each["ram_bytes"] for each in answer["candidates"] if each["ram_bytes"] > 16 << 20], [])
        self.assertIn("capacity: 16M", answer["config"])

    def test_a_tier_that_is_left_out_is_named(self):
        tier = os.path.join(self.root, "tier")
        os.mkdir(tier)
        for kind, says in ((":durable", "nothing was written that its log would keep"), ("", "about as fast")):
            text = self.cairn("advise", "--trace", self.loop(), "--ram", "1G", "--tier", f"{tier}:1G{kind}",
                              "--what-if", "store=network", check=0).stdout
            self.assertIn("is left out", text)
            self.assertIn(says, text)
            self.assertIn("tiers: []", text)
            left = self.advise("--trace", self.loop(), "--ram", "1G", "--tier", f"{tier}:1G{kind}",
                               "--what-if", "store=network")["left_out"]
            reason = "nothing-written" if kind else "memory-as-fast"
            self.assertEqual([(each["directory"], each["durable"], each["reason"]) for each in left],
                             [(tier, bool(kind), reason)])
            self.assertIn(left[0]["sentence"], text)
        self.assertEqual(self.advise("--trace", self.loop(), *NETWORK)["left_out"], [])

    def test_a_running_node_is_recorded_for_its_advice(self):
        """One whose programs are sampled for a report as well: the sums that clients report for it are no accesses."""
        with open(os.path.join(self.work, "input"), "wb") as file:
            file.write(os.urandom(128 * BLOCK))
        self.cairn("up", "--name", "n", "--ram", "4M", "--tier", "none", "--buffer", self.work, check=0)
        try:
            said = self.cairn("advise", "--node", "n", "--seconds", "0.2", check=2).stderr
            self.assertIn("node n have accessed nothing within", said)
            self.refused("advise", "--node", "n", "--config", "x.yaml", says="exclude each other")
            reads = [sys.executable, "-c", READ_TWICE, "input", "100000"]
            with subprocess.Popen([CAIRN, "run", "--node", "n", "--report", "x.html", "--", *reads],
                                  cwd=self.work, env=self.environment, stderr=subprocess.DEVNULL) as program:
                self.wait_until(lambda: json.loads(self.cairn("status", "--node", "n", "--json", check=0).stdout)
                                ["counters"]["reads"] > 0, "the program reads")
                answer = self.advise("--node", "n", "--seconds", "0.5", "--what-if", "store=network,page-cache=0")
                text = self.cairn("advise", "--node", "n", "--seconds", "0.3", cwd=self.root, check=0).stdout
                program.terminate()
        finally:
            self.cairn("down", "--node", "n", "--discard")
        self.assertEqual(answer["sizes"]["working_set_bytes"], 128 * BLOCK)
        self.assertIn(("as configured", 4 << 20), [(each["name"], each["ram_bytes"]) for each in answer["candidates"]])
        node = answer["node"]
        self.assertEqual(node["name"], "n")
        self.assertGreater(node["events"], 100)
        self.assertTrue(0.5 <= node["seconds"] < 5, node)
        self.assertTrue(0 < node["miss_bytes"] <= node["read_bytes"], node)
        self.assertRegex(text, "of the programs of node n, which were recorded for .* just now")
        self.assertIn("keeps no record of what came before", text)

    def test_a_configuration_that_does_not_help_beside_one_that_does(self):
        answer = self.advise("--trace", self.loop(), "--tier", "none", "--what-if", "store=network,mode=bypass")
        self.assertEqual(answer["verdict"], "do-not-use")
        self.assertIn("This configuration does not help: in mode bypass each call goes to the store.",
                      answer["sentence"])
        self.assertIn('"working set" would: ', answer["sentence"])

    def test_what_is_read_again_at_once_is_not_read_once(self):
        rows = [(0.001 * at, False, 16 * (at // 5 * 37 % 1000), 4096) for at in range(5000)]
        answer = self.advise("--trace", self.trace(rows, "again.csv"), *NETWORK)
        self.assertEqual(answer["verdict"], "do-not-use")
        self.assertNotEqual(answer["refusal"], "read-once")
        text = self.cairn("advise", "--trace", self.trace(rows, "again.csv"), *NETWORK, check=0).stdout
        self.assertNotIn("once,", text)
        self.assertNotIn("used twice", text)

    def test_what_if_and_target(self):
        answer = self.advise("--trace", self.loop(), "--tier", "none", "--target", "50%-of-io-time", "--fsyncs", "10",
                             "--what-if", "ram=16M,nvme=1G,policy=hot-data", "--what-if", "store=network")
        chosen = answer["candidates"][answer["chosen"]]
        self.assertEqual((chosen["name"], chosen["ram_bytes"], chosen["policy"]), ("what if", 16 << 20, "hot-data"))
        self.assertEqual(chosen["tiers"][0]["bytes"], 1 << 30)
        self.assertEqual(answer["verdict"], "helps")
        self.assertTrue(1000 * BLOCK < answer["sizes"]["target_bytes"] < 2000 * BLOCK)
        self.assertAlmostEqual(answer["fsync_seconds"]["store"], 0.01)
        self.refused("advise", "--trace", self.loop(), "--what-if", "ram=16M,nvme=1G,store=network", "--tier", "none",
                     "--write", os.path.join(self.root, "x.yaml"), says=["no directory", "--tier DIR:SIZE"])

    def test_a_program_is_run_once_and_the_sign_is_right(self):
        file = os.path.join(self.work, "data")
        with open(file, "wb") as data:
            data.write(os.urandom(128 * BLOCK))
        # The store's files are in the page cache here, where Cairn gains nothing, and none is predicted.
        program = [sys.executable, "-c", READ_TWICE, file, "10"]
        answer = self.advise("--ram", "256M", "--tier", "none", "--", *program)
        self.assertEqual(answer["verdict"], "do-not-use", answer["sentence"])
        self.assertEqual(answer["sizes"]["working_set_bytes"], 128 * BLOCK)
        self.assertGreaterEqual(answer["workload"]["reads"]["block_uses"], 128 * 10 * 0.9)
        # The same program where the kernel keeps nothing.
        answer = self.advise("--ram", "256M", "--tier", "none", "--what-if", "store=network", "--", *program)
        self.assertEqual(answer["verdict"], "helps", answer["sentence"])
        self.assertEqual([name for name in os.listdir("/tmp") if name.startswith("cairn-advise-")], [])

    def test_a_signal_while_the_node_starts_leaves_nothing(self):
        place = os.path.join(self.root, "tmp")
        os.mkdir(place)
        environment = {**self.environment, "TMPDIR": place}
        for number in (signal.SIGTERM, signal.SIGHUP):
            advise = subprocess.Popen([CAIRN, "advise", "--tier", "none", "--", "touch", "begun"], cwd=self.work,
                                      env=environment, stderr=subprocess.DEVNULL)
            while not os.listdir(place) and advise.poll() is None:
                pass
            advise.send_signal(number)
            self.assertIn(advise.wait(timeout=30), (128 + number, -number))
            self.assertEqual(os.listdir(place), [])
            self.assertEqual([name for name in os.listdir(self.runs) if name.startswith("run-")], [])

    def test_bad_input(self):
        loop = self.loop()
        self.refused("advise", says=["no trace, no node and no program", "--trace FILE"])
        self.refused("advise", "--trace", loop, "--", "true", says="exclude each other")
        self.refused("advise", "--node", "n", "--", "true", says="exclude each other")
        self.refused("advise", "--node", "nowhere", says="no node named nowhere")
        self.refused("advise", "--node", "a/../b", says="a/../b")
        self.refused("advise", "--node", "n", "--seconds", "0", says="--seconds")
        self.refused("advise", "--trace", loop, "--seconds", "3", says="--seconds without --node")
        self.refused("advise", "--trace", "/no/such", says="/no/such")
        self.refused("advise", "--trace", self.trace([], "empty.csv"), says=["empty.csv: there are no reads"])
        self.refused("advise", "--tier", "none", "--", "true", says=["true has made no reads and no", "--buffer"])
        self.assertEqual(self.cairn("advise", "--tier", "none", "--", "false").returncode, 1)
        other = os.path.join(self.root, "other.trace")
        self.cairn("trace", "make", "irm", "--references", "10", other, check=0)
        with open(other, "r+b") as file:
            file.seek(8)
            file.write(b"\x63")
        self.refused("advise", "--trace", other, says=other)
        for pair, says in (("ram=lots", "ram=lots: that cannot be"), ("ram=9999999T", "cannot be"),
                           ("nvme=0", "cannot be"), ("rma=1G", 'did you mean "ram"'),
                           ("nodes=8", "no advice on several nodes"),
                           ("nodes=0", "from 1 to"), ("nodes=x", "cannot be"),
                           ("nvme=0", "leave the key out"), ("", 'what-if "": no KEY=VALUE'),
                           ("ram=1G,", 'what-if "": no KEY=VALUE'), ("ram=1G,ram=2G", "each key once"),
                           ("policy=best", "max-bandwidth"), ("store=tape", "network"), ("ram", "no KEY=VALUE")):
            self.refused("advise", "--trace", loop, "--what-if", pair, says=says)
        self.assertEqual(self.advise("--trace", loop, *NETWORK, "--what-if", "nodes=1")["verdict"], "helps")
        self.refused("advise", "--trace", loop, "--what-if", "ram=1G", "--what-if", "ram=1G", says="each key once")
        self.refused("advise", "--trace", loop, "--write", "", says=["--write", "no name of a file"])
        for number in ("nan", "-1", "inf", "x"):
            self.refused("advise", "--trace", loop, f"--fsyncs={number}", says=["--fsyncs", "not in range"])
        for target in ("", "10", "0%-of-io-time", "nan%-of-io-time", "10%-of-life"):
            self.refused("advise", "--trace", loop, "--target", target, says="--target")
        self.refused("advise", "--trace", loop, "--store", "/no/such", says="--store /no/such")
        self.refused("advise", "--trace", loop, "--force", says="--force")


if __name__ == "__main__":
    unittest.main(verbosity=1)
