#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn run --report` and `cairn report`: pages that are well-formed and say what the data says, records that are
kept, and bad input that overwrites nothing.

The pages are made from records that the tests write (report_runs_test.py runs programs on real nodes,
report_browser_test.py loads a page).
"""
import json
import os
import re
import unittest
import xml.etree.ElementTree as ET

from command_test import CommandTest

XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</script><svg onload='x'>\n\"&\x01\ufffe.dat"
MIB = 1 << 20


def timeline_of(rows=500, files=1000, processes=64, seconds=3600.0):
    """An hour of a busy run, as its node would have sampled it."""
    times = [round(seconds * at / (rows - 1), 3) for at in range(rows)]

    def grown(per_second, wobble=7):
        total, values = 0, []
        for at in range(rows):
            total += int(per_second * seconds / rows * (1 + at * 31 % wobble / wobble)) if at else 0
            values.append(total)
        return values

    read, missed = grown(400 * MIB), grown(60 * MIB, 5)
    series = {"seconds": times, "reads": grown(9000), "read_bytes": read, "miss_bytes": missed,
              "hit_bytes.ram": [(a - b) * 3 // 4 for a, b in zip(read, missed)],
              "hit_bytes.nvme": [(a - b) // 4 for a, b in zip(read, missed)], "writes": grown(2000),
              "write_bytes": grown(120 * MIB), "write_through_bytes": grown(MIB), "io_time_ns": grown(8e9),
              "flushed_bytes": grown(110 * MIB), "evicted_blocks": grown(700), "promoted_blocks": grown(50),
              "demoted_blocks": grown(90), "used_bytes.ram": [(at % 100) * 160 * MIB for at in range(rows)],
              "used_bytes.nvme": [at * 40 * MIB for at in range(rows)],
              "dirty_bytes": [(at % 50) * 20 * MIB for at in range(rows - 1)] + [0],
              "processes": [processes] * rows, "fsyncs_logged": grown(2), "fsyncs_stored": grown(1),
              "fetched_bytes.sequential": grown(50 * MIB), "used_ahead_bytes.sequential": grown(45 * MIB),
              "evicted_unused_bytes.sequential": grown(MIB), "fetched_bytes.strided": grown(9 * MIB),
              "used_ahead_bytes.strided": grown(7 * MIB)}
    return {"schema": "cairn-timeline-1", "run": "4711", "node": "job", "command_line": ["./simulate", HOSTILE],
            "directory": "/pfs/project", "began_unix_seconds": 1795872000.0, "seconds": seconds,
            "interval_seconds": 6.4, "tiers": [{"name": "ram", "capacity_bytes": 1 << 34},
                                               {"name": "nvme", "capacity_bytes": 1 << 36}],
            "series": series,
            "leaders": [{"seconds": 12.0 * at, "tier": "ram", "expert": ("lru", "arc")[at % 2]} for at in range(9)],
            "files": [{"path": f"/pfs/project/{HOSTILE if at == 0 else at}", "miss_bytes": (files - at) * MIB,
                       "late_bytes": MIB, "below_bytes": at, "hit_bytes": 5, "waits": at + 1,
                       "written_bytes": 9 * at, "fsyncs": at, "read_seconds": 100.5 - at, "write_seconds": 0.25 * at,
                       "fsync_seconds": 0.5 * at} for at in range(10)],
            "files_read": files, "files_written": 7,
            "heat": {"path": "/pfs/project/mesh", "file_bytes": 1 << 30,
                     "cells": [None if at % 5 == 0 else -float(at % 9) for at in range(256)]},
            "processes": {"count": processes,
                          "list": [{"pid": 100 + at, "command": "simulate", "io_seconds": 60.0 + at % 9,
                                    "read_bytes": MIB * at, "miss_bytes": at, "written_bytes": MIB}
                                   for at in range(processes)]},
            "durability": "store",
            "store": {"measured": True, "from": "measured 2026-11-21", "read_bandwidth": 500e6,
                      "write_bandwidth": 300e6}}


def record_of(timeline, **changes):
    series = timeline["series"]
    report = {"io_seconds": series["io_time_ns"][-1] / 1e9, "read_bytes": series["read_bytes"][-1],
              "written_bytes": series["write_bytes"][-1], "miss_bytes": series["miss_bytes"][-1],
              "drain_seconds": 4.5, "warnings": ["a warning"], "foreign": []}
    return {"schema": "cairn-run-1", "ended": True, "node": "job", "run": "4711",
            "command_line": timeline["command_line"], "wall_seconds": timeline["seconds"] - 5, "exit_status": 0,
            "program_exit_status": 0, "killed_by_signal": 0, "stored": True, "unstored": [], "report": report,
            "timeline": timeline, **changes}


class ReportTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.state = os.path.join(self.root, "state")
        self.environment["XDG_STATE_HOME"] = self.state
        self.records = os.path.join(self.state, "cairn", "runs")
        self.page = os.path.join(self.work, "run.html")

    def keep(self, record, name="20261128-120000-4711"):
        os.makedirs(self.records, exist_ok=True)
        with open(os.path.join(self.records, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(record, file)

    def make(self, *arguments):
        self.cairn("report", *arguments, "-o", self.page, check=0)
        return self.read()

    def read(self):
        """The page's root. The parser refuses whatever is not well-formed."""
        with open(self.page, encoding="utf-8") as file:
            text = file.read()
        self.assertFalse(re.search(r"(src|href|url)\s*[=(]\s*[\"']?(https?:|//|/)", text))
        self.assertNotIn("<script", text)
        return ET.fromstring(text)

    def number(self, root, name):
        return float(self.by_id(root, name).find(f"{XHTML}data").get("value"))

    def by_id(self, root, name):
        found = [each for each in root.iter() if each.get("id") == name]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def text(self, element):
        return "".join(element.itertext())

    def column(self, root, table, index):
        """The numbers of a column of a table, without its head."""
        rows = self.by_id(root, table).find(f"{XHTML}tbody").findall(f"{XHTML}tr")
        return [float(row[index].find(f"{XHTML}data").get("value")) for row in rows]


class Page(ReportTest):
    def test_an_hour_of_a_thousand_files(self):
        record = record_of(timeline_of())
        self.keep(record)
        root = self.make()
        self.assertLess(os.path.getsize(self.page), 3 * MIB)
        series = record["timeline"]["series"]
        self.assertEqual(self.number(root, "read"), series["read_bytes"][-1])
        self.assertEqual(self.number(root, "written"), series["write_bytes"][-1])
        self.assertEqual(self.number(root, "wall"), record["wall_seconds"])
        self.assertEqual(self.number(root, "io"), round(record["report"]["io_seconds"], 3))
        self.assertEqual(self.column(root, "totals", 1)[0], series["read_bytes"][-1])
        waited = [f["miss_bytes"] + f["late_bytes"] + f["below_bytes"] for f in record["timeline"]["files"]]
        self.assertEqual(self.column(root, "files", 1), [100.5 - 0.25 * at for at in range(10)])
        self.assertEqual(self.column(root, "files", 4), waited)
        self.assertEqual(self.column(root, "files", 9), [9 * at for at in range(10)])
        self.assertEqual(self.column(root, "processes", 2),
                         [p["io_seconds"] for p in record["timeline"]["processes"]["list"]])
        self.assertEqual(self.column(root, "predictors", 1),
                         [series["fetched_bytes.sequential"][-1], series["fetched_bytes.strided"][-1]])
        # The table behind a chart adds up to what was read.
        until, rate = self.column(root, "reads-numbers", 0), self.column(root, "reads-numbers", 1)
        read = sum(r * (t - s) for r, t, s in zip(rate, until, [0.0, *until]))
        self.assertAlmostEqual(read / series["hit_bytes.ram"][-1], 1, places=5)
        self.assertEqual(len(self.by_id(root, "heat-t")), 0)

    def levels(self, dirty, written, flushed, **changes):
        """The words on durability for samples a second apart."""
        timeline = timeline_of(rows=len(dirty), seconds=float(len(dirty) - 1))
        timeline["series"].update(dirty_bytes=dirty, write_bytes=written, flushed_bytes=flushed)
        self.keep(record_of({**timeline, **changes}))
        rows = self.by_id(self.make(), "levels-reached").find(f"{XHTML}tbody").findall(f"{XHTML}tr")
        return {self.text(row[0]): self.text(row[1]) for row in rows}

    def test_when_all_data_was_in_the_store(self):
        def stored(*columns):
            return self.levels(*columns)["all data in the store"]
        between = (r"^between 2(\.0*)? s and 3(\.0*)? s after the run began, as the samples saw it; "
                   "confirmed at the end$")
        self.assertRegex(stored([0, 0, 5, 0, 0], [0, 0, 5, 5, 5], [0, 0, 0, 5, 5]), between)
        # No sample saw it dirty.
        self.assertRegex(stored([0] * 5, [0, 0, 0, 7, 7], [0, 0, 0, 7, 7]), between)
        self.assertRegex(stored([0] * 5, [0, 7, 7, 7, 7], [0, 0, 0, 7, 7]), between)
        self.assertEqual(stored([0] * 5, [0] * 5, [0] * 5), "all the time: nothing was written; confirmed at the end")
        self.assertEqual(stored([0, 5, 5], [0, 5, 5], [0, 0, 0]), "at the end of the run")

    def test_who_answered_fsyncs(self):
        none = ([0] * 3, [0] * 3, [0] * 3)
        self.assertEqual(self.levels(*none, fsyncs=6)["fsyncs"], "6 of this run, each answered by the store")
        logged = self.levels(*none, fsyncs=6, durability="node")["fsyncs"]
        self.assertRegex(logged, r"^6 of this run; \d+ of the node answered from the durable log, \d+ by the store$")
        self.assertEqual(self.levels(*none)["fsyncs"], "not recorded")  # by a node of before

    def advice(self, io=3000.0, **series):
        """What a record of 64 busy processes and an hour says would help; `series`: the last of their values."""
        timeline = timeline_of(rows=20)
        for name, value in series.pop("timeline", {}).items():
            timeline[name] = value
        for name, value in series.items():
            timeline["series"][name] = [0] * 19 + [value]
        record = record_of(timeline)
        record["report"]["io_seconds"] = io * 64
        self.keep(record)
        return self.text(self.by_id(self.make(), "advice-list"))

    def test_what_would_help(self):
        calm = {"miss_bytes": MIB, "fetched_bytes.strided": 0, "fetched_bytes.sequential": 0}
        self.assertIn("Nothing in this record", self.advice(**calm))
        self.assertIn("little to give", self.advice(io=36.0))
        kept = self.advice(miss_bytes=10 ** 12, read_bytes=2 * 10 ** 12, evicted_blocks=10 ** 7)
        self.assertRegex(kept, r"waited for the store for 931 GiB of the 1.82 TiB they read\. The tiers were full")
        first = self.advice(miss_bytes=10 ** 12, read_bytes=2 * 10 ** 12, evicted_blocks=0)
        self.assertIn("those were first reads", first)
        vain = self.advice(**{**calm, "fetched_bytes.strided": 10 ** 9, "used_ahead_bytes.strided": 10 ** 8})
        self.assertRegex(vain, r"of the \S+ MiB that were fetched ahead were not used")
        through = self.advice(**calm, write_bytes=10 ** 9, write_through_bytes=9 * 10 ** 8)
        self.assertIn("went straight to the store", through)
        waiting = [{"path": "/log", "fsync_seconds": 150_000.0, "fsyncs": 9}]
        synced = {"files": waiting, "fsyncs": 9}
        self.assertIn("A durable tier on a local device", self.advice(**calm, timeline=synced))
        node = {**synced, "durability": "node"}
        self.assertIn("could not take 7 of them",
                      self.advice(**calm, timeline=node, fsyncs_logged=2, fsyncs_stored=7))
        self.assertIn("The log answered them", self.advice(**calm, timeline=node, fsyncs_logged=9, fsyncs_stored=0))

    def test_hostile_names_stay_text(self):
        self.keep(record_of(timeline_of(rows=20)))
        root = self.make()
        shown = self.text(self.by_id(root, "files"))
        self.assertIn("</script><svg onload='x'>\ufffd\"&\ufffd\ufffd.dat", shown)
        self.assertEqual([e for e in root.iter() if e.get("onload") or e.tag.endswith("script")], [])

    def test_readers_of_any_kind(self):
        self.keep(record_of(timeline_of(rows=50)))
        root = self.make()
        identifiers = [e.get("id") for e in root.iter() if e.get("id")]
        self.assertEqual(len(identifiers), len(set(identifiers)))
        for svg in root.iter(SVG + "svg"):
            self.assertEqual(svg.get("role"), "img")
            self.assertIn(svg.get("aria-labelledby"), identifiers)
        for figure in root.iter(XHTML + "figure"):
            self.assertEqual(figure.get("tabindex"), "0")
        self.assertEqual(len(list(root.iter(XHTML + "h1"))), 1)
        for table in root.iter(XHTML + "table"):
            self.assertTrue(all(th.get("scope") for th in table.iter(XHTML + "th")))
        charts = {f.get("id") for f in root.iter(XHTML + "figure")}
        self.assertLessEqual({"reads", "writes", "flushes", "levels", "hits", "ahead", "moves"}, charts)

    def test_the_estimate_is_marked_and_not_invented(self):
        record = record_of(timeline_of(rows=50, processes=1))
        record["report"]["io_seconds"] = 1000.0
        self.keep(record)
        root = self.make()
        estimate = self.by_id(root, "estimate")
        series, wall = record["timeline"]["series"], record["wall_seconds"]
        came = series["miss_bytes"][-1] + series["fetched_bytes.sequential"][-1] + series["fetched_bytes.strided"][-1]
        low = wall - 1000 + came / 550e6
        high = wall - 1000 + series["read_bytes"][-1] / 450e6 + series["write_bytes"][-1] / 270e6
        self.assertAlmostEqual(float(estimate.get("data-low")), low, delta=0.01)
        self.assertAlmostEqual(float(estimate.get("data-high")), high, delta=0.01)
        self.assertIn("by estimate", self.text(self.by_id(root, "verdict")))
        record["timeline"]["store"]["measured"] = False
        self.keep(record)
        root = self.make()
        self.assertIn("not estimated", self.text(self.by_id(root, "estimate")))
        self.assertNotIn("Without Cairn", self.text(self.by_id(root, "verdict")))

    def test_a_run_that_never_ended(self):
        self.keep({"schema": "cairn-run-1", "ended": False, "timeline": timeline_of(rows=9)})
        root = self.make("4711")
        self.assertIn("never ended", self.text(root))
        self.assertEqual(self.number(root, "wall"), 3600)
        self.assertIn("never ended", self.cairn("report", "--list", check=0).stdout)

    def test_what_a_record_lacks_the_page_lacks(self):
        for timeline in ({}, {"series": {}}, {"series": {"seconds": [0.0], "read_bytes": "x"}},
                         {"series": {"seconds": [0, 1], "read_bytes": [0, "y"], "dirty_bytes": [None, 3]}},
                         {"files": [3], "processes": {"list": [None]}, "heat": {"cells": ["x"]}, "tiers": [1]}):
            self.keep({"schema": "cairn-run-1", "ended": True, "stored": True, "timeline": timeline})
            self.make()

    def test_each_chart_of_the_page_is_drawn(self):
        """Without matplotlib that is said, and the directory stays empty."""
        self.keep(record_of(timeline_of(rows=30)))
        figures = {f.get("id") or "heat" for f in self.make().iter(XHTML + "figure")}
        pictures = os.path.join(self.work, "pictures")
        result = self.cairn("report", "--png", pictures)
        if b"matplotlib" in result.stderr.encode():
            self.assertEqual((result.returncode, os.listdir(pictures)), (2, []))
            self.skipTest("matplotlib is not installed")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual({os.path.splitext(name)[0] for name in os.listdir(pictures)}, figures)
        for name in os.listdir(pictures):
            self.assertIn(os.path.join(pictures, name), result.stderr)
        self.refused("report", "--png", pictures, says=[".png", "there already", "--force"])
        self.cairn("report", "--png", pictures, "--force", check=0)

    def test_what_cannot_be_drawn_is_refused(self):
        self.keep({"schema": "cairn-run-1", "ended": True, "stored": True, "timeline": {}})
        self.refused("report", "--png", self.work, says="no chart that shows anything")
        self.keep(record_of(timeline_of(rows=30)))
        self.refused("report", "--png", self.page + "/no/such", says=["--png", "No such file"])
        with open(self.page, "w", encoding="utf-8"):
            pass
        self.refused("report", "--png", self.page, says=["--png", "Not a directory"])


class BadInput(ReportTest):
    def test_runs_that_are_not_kept(self):
        self.refused("report", says=["no run is kept", "--report FILE.html"])
        self.keep(record_of(timeline_of(rows=5)))
        self.refused("report", "12", says=["no run 12 is kept", "--list"])
        self.assertIn("I/O took", self.cairn("report", check=0).stdout)

    def test_damaged_records(self):
        self.keep([], name="20261128-120000-1")
        self.refused("report", says=["20261128-120000-1.json", "not a record"])
        self.assertIn("damaged", self.cairn("report", "--list", check=0).stdout)

    def test_nothing_is_overwritten(self):
        self.keep(record_of(timeline_of(rows=5)))
        with open(self.page, "w", encoding="utf-8") as file:
            file.write("precious")
        self.refused("report", "-o", self.page, says=["run.html", "not a report of Cairn", "--force"])
        self.refused("run", "--report", self.page, "--", "true", says=["--report", "not a report of Cairn"])
        with open(self.page, encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")
        self.cairn("report", "-o", self.page, "--force", check=0)
        self.make()  # a page of ours may be replaced
        self.refused("report", "-o", self.work, says="is a directory")
        self.refused("run", "--report", self.work, "--", "true", says="is a directory")
        self.refused("run", "--report", "no/such/x.html", "--", "true", says=["no/such/x.html", "No such file"])
        self.refused("run", "--force", "--", "true", says="--force without --report")
        self.refused("run", "--report", "x.html", "--report-json", "x.html", "--", "true", says="the same file")
        self.assertEqual(sorted(os.listdir(self.work)), ["run.html"])

    def test_a_state_directory_that_cannot_be_made(self):
        self.environment["XDG_STATE_HOME"] = "/dev/null/no"
        result = self.cairn("run", "--ram", "16M", "--report", self.page, "--", "true", check=0)
        self.assertIn("not kept", result.stderr)
        self.assertEqual(self.number(self.read(), "written"), 0)
        self.assertEqual([name for name in os.listdir(self.runs) if name.startswith("run-")], [])

    def test_links_are_followed(self):
        self.keep(record_of(timeline_of(rows=5)))
        os.mkdir(os.path.join(self.work, "pages"))
        os.symlink("pages/latest.html", self.page)
        os.symlink("today.html", os.path.join(self.work, "pages", "latest.html"))
        for _ in range(2):  # what the last link names is not there, and is
            self.make()
            self.assertTrue(os.path.islink(self.page))
            self.assertEqual(sorted(os.listdir(os.path.join(self.work, "pages"))), ["latest.html", "today.html"])
        self.cairn("run", "--ram", "16M", "--report", self.page, "--", "true", check=0)
        self.assertTrue(os.path.islink(self.page))
        self.assertNotEqual(self.number(self.read(), "wall"), 3595)
        circle = os.path.join(self.work, "circle")
        os.symlink("circle", circle)
        self.refused("report", "-o", circle, says=["circle", "Too many levels"])
        os.symlink("no/such/x.html", os.path.join(self.work, "lost"))
        self.refused("run", "--report", "lost", "--", "true", says=["lost", "No such file"])

    def test_the_records_are_bounded(self):
        for number in range(40):
            self.keep(record_of(timeline_of(rows=2)), name=f"20250101-1200{number:02d}-{number}")
        self.cairn("run", "--report", self.page, "--ram", "16M", "--", "true", check=0)
        names = sorted(os.listdir(self.records))
        self.assertLessEqual(len(names), 32)
        self.assertIn("20250101-120039-39.json", names)
        self.assertNotIn("20250101-120008-8.json", names)


if __name__ == "__main__":
    unittest.main()
