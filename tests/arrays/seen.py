#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users see of datasets: `cairn arrays`, `cairn explain --dataset`, and the report of a run."""

import importlib.util
import json
import os
import signal
import socket
import sys
import time

import stage

sys.path.insert(0, str(stage.HERE.parent / "modes"))
from scene import Node  # noqa: E402

PROGRAMS = stage.HERE / "seen_programs.py"
ROWS = "fields/rows chunk=[256,256]"
SECONDS = 120


class Scene(Node):
    """A node with the file of seen_programs.make()."""

    def __init__(self, python):
        self.python = python
        super().__init__(ram="256M", tier=None)
        self.native("make")

    def __exit__(self, kind, *rest):
        super().__exit__(kind, *rest)
        if kind is None:
            stage.under_cairn.remove(self.work)

    def native(self, program):
        outcome = stage.under_cairn.execute([self.python, PROGRAMS, program], self.directory, SECONDS)
        assert outcome.status == 0, outcome.errors
        time.sleep(0.1)

    def run(self, program, *options):
        """Returns: the report as text."""
        line = [stage.under_cairn.CAIRN, "run", "--node", "n", *options, "--", self.python, PROGRAMS, program]
        outcome = stage.under_cairn.execute(line, self.directory, SECONDS, self.environment)
        assert outcome.status == 0, outcome.errors
        return outcome.errors

    def bury_the_ended(self):
        """A writer that has ended is one until the node has buried it."""
        until = time.monotonic() + SECONDS
        while self.status()["slots_in_use"] != 0:
            assert time.monotonic() < until, self.status()
            time.sleep(0.02)

    def path(self, name="a.h5"):
        return self.directory / name

    def arrays(self, *options, name="a.h5"):
        found = json.loads(self.cairn("arrays", "--node", "n", "--json", self.path(name), *options))
        return {dataset["name"]: dataset for dataset in found}

    def asked(self, request):
        """What the service answers to a request of the control socket."""
        path = next((self.work / "run").rglob("control.sock"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            return json.loads(connection.makefile().readline())

    def refused(self, *words):
        """What the command says that it cannot do."""
        line = [stage.under_cairn.CAIRN, *words, "--node", "n"]
        outcome = stage.under_cairn.execute(line, self.directory, SECONDS, self.environment)
        assert outcome.status == 2, (outcome.status, outcome.output, outcome.errors)
        return outcome.errors


def datasets_are_as_the_file_has_them(scene):
    scene.run("read_all")
    found = scene.arrays()
    rows, packed = found["/fields/rows"], found["/packed"]
    assert (rows["shape"], rows["cell_bytes"], rows["layout"]) == ([2048, 1024], 4, "contiguous"), rows
    assert (packed["shape"], packed["layout"], packed["file_chunk"]) == ([64, 64, 64], "chunked", [16, 32, 64]), packed
    assert packed["filters"] == ["shuffle", "gzip"], packed
    # Learned from the boxes.
    assert rows["chunk"] == [256, 256] and rows["ghost_before"] == rows["ghost_behind"] == [2, 2], rows
    assert rows["grid"] == [8, 4] and rows["chunks"] == 32, rows
    assert 16 <= rows["cached_chunks"] == len(rows["cached"]) <= 32, rows
    assert all(tier == "ram" for _, tier in rows["cached"]), rows
    assert rows["cached_bytes"] >= rows["cached_chunks"] * 258 * 258 * 4, rows
    assert rows["served_reads"] >= 16 and rows["served_reads"] + rows["left_reads"] == 64, rows
    # Each read of a whole: 8 chunks, the first time unpacked.
    assert packed["chunk"] == [16, 32, 64] and packed["cached_chunks"] == packed["chunks"] == 8, packed
    assert packed["served_reads"] == 5 and packed["served_bytes"] == 2 * 4 * 64 ** 3 + 3 * 4 * 17 * 4 * 64, packed
    assert packed["left"] == {"not in the tiers yet": 1, "not a plain box": 1, "type conversion": 1}, packed
    for name, why in (("/plain_chunks", "chunks without filters"), ("/small", "smaller than a MiB"),
                      ("/text", "cells that are no plain numbers"), ("/empty", "nothing is stored of it")):
        dataset = found[name]
        assert dataset["not_served"] == why and dataset["left"] == {why: 1}, dataset
        assert dataset["served_reads"] == 0 and "chunk" not in dataset, dataset
    assert "/later" not in found, "nobody has read it"
    text = scene.cairn("arrays", "--node", "n", scene.path(), "--dataset", "/packed")
    assert "/packed: 64 x 64 x 64 cells of 4 B, chunked 16 x 32 x 64, shuffle + gzip\n" in text, text
    assert "  cached    8 of 8 chunks, 1 MiB\n" in text, text
    assert "  reads     5 from chunks (62 %), 3 left to HDF5: 1 type conversion" in text, text
    # Another run of the same datasets counts on.
    scene.run("end_by_itself")
    again = scene.arrays("--dataset", "/packed")
    assert list(again) == ["/packed"] and again["/packed"]["served_reads"] == 7, again
    scene.run("read_by_address")
    assert scene.arrays("--dataset", "/packed")["/packed"]["served_reads"] == 7
    assert scene.arrays()[""]["served_reads"] == 1


def chunks_of_an_earlier_shape_are_shown(scene):
    scene.run("two_boxes", "--array", f"a.h5:/{ROWS}")
    before = scene.arrays("--dataset", "/fields/rows")["/fields/rows"]
    assert before["chunk"] == [256, 256] and before["cached_chunks"] > 0 and before["earlier"] == [], before
    scene.run("read_strips")
    rows = scene.arrays("--dataset", "/fields/rows")["/fields/rows"]
    assert rows["chunk"] == [128, 512] and rows["cached_chunks"] >= 8, rows
    earlier = {tuple(grid["chunk"]): grid for grid in rows["earlier"]}[256, 256]
    assert earlier["ghost_before"] == [0, 0] and earlier["grid"] == [8, 4] and earlier["chunks"] == 32, earlier
    assert earlier["cached_chunks"] == len(earlier["cached"]) >= before["cached_chunks"], (earlier, before)
    assert all(grid["cached_chunks"] > 0 for grid in rows["earlier"]), rows
    text = scene.cairn("arrays", "--node", "n", scene.path(), "--dataset", "/fields/rows")
    assert f"  earlier   256 x 256: {earlier['cached_chunks']} of 32 chunks, " in text, text


def each_read_counts_once(scene):
    scene.run("open_for_each_read")
    packed = scene.arrays()["/packed"]
    assert packed["served_reads"] + packed["left_reads"] == 511 and packed["served_reads"] >= 500, packed


def what_is_written_is_left_to_hdf5(scene):
    scene.run("write_and_read")
    later = scene.arrays()["/later"]
    assert later["left"] == {"the file is open for writing or SWMR": 1} and later["served_reads"] == 0, later


def what_others_may_write_is_left_to_hdf5(scene):
    why = "a program has the file open for writing, or past the buffer"
    text, _ = report_of(scene, "read_beside_a_writer")
    assert f"3 left to HDF5: 3 {why}\n" in text, text
    found = scene.arrays()
    for name in ("/packed", "/fields/rows"):
        assert found[name]["left"] == {why: 3} and found[name]["served_reads"] == 0, found[name]
    scene.bury_the_ended()
    scene.run("read_over_a_change")
    changed = {"the file has changed since it was opened": 2, "not in the tiers yet": 1, why: 3}
    found = scene.arrays()
    for name in ("/packed", "/fields/rows"):
        assert found[name]["left"] == changed, found[name]


def a_process_tells_of_a_bounded_number(scene):
    scene.run("hundreds")
    found = scene.arrays(name="many.h5")
    assert len(found) == 256, len(found)


def a_close_loses_nothing_in_a_burst(scene):
    scene.run("burst")
    counted = {}
    for number in range(4):
        found = scene.arrays(name=f"burst{number}.h5").values()
        counted[number] = sum(1 for one in found if one["served_reads"] + one["left_reads"] == 1)
    assert counted == dict.fromkeys(range(4), 250), counted


def datasets_that_come_and_go_keep_their_names(scene):
    scene.run("come_and_go")
    found = scene.arrays(name="comes.h5")
    for number in range(20):
        one = found[f"/d{number}"]
        assert one["shape"] == [1000 + number] and one["left_reads"] == 1, (number, found)
    assert found["/again"]["shape"] == [6000] and found["/again"]["left_reads"] == 6, found["/again"]


def datasets_of_one_name_are_one_list(scene):
    scene.run("two_of_one_name")
    for command in ("arrays", "explain"):
        found = json.loads(scene.cairn(command, "--node", "n", "--json", scene.path("two.h5"), "--dataset", "/x"))
        assert [one["shape"] for one in found] in ([[100], [200]], [[200], [100]]), (command, found)


def the_chunks_of_one_answer_are_bounded(scene):
    scene.run("many_chunks")
    found = scene.arrays(name="chunks.h5")
    large = [found[f"/d{number}"] for number in range(8)]
    assert all(one["chunks"] == 65536 and 7000 < one["chunks_looked_at"] < 8192 for one in large), large
    assert found["/few"]["chunks_looked_at"] == found["/few"]["chunks"] == 4, found["/few"]
    assert sum(one["chunks_looked_at"] for one in found.values()) <= 65536, found
    one, = scene.arrays("--dataset", "/d3", name="chunks.h5").values()
    assert one["chunks_looked_at"] == 65536, one


def a_name_that_is_no_text_is_found(scene):
    scene.run("many_chunks")
    line = [stage.under_cairn.CAIRN, "arrays", "--node", "n", scene.path("chunks.h5"), "--dataset",
            os.fsdecode(b"/\xff\xfe")]
    outcome = stage.under_cairn.execute(line, scene.directory, SECONDS, scene.environment)
    assert outcome.status == 0 and "1048576 cells of 4 B" in outcome.output, outcome


def what_cannot_be_shown_is_named(scene):
    for name, message in (("missing.h5", "missing.h5: No such file or directory"),
                          ("plain.txt", "plain.txt is no HDF5 file"), (".", "is not a regular file"),
                          ("a.h5", "no program has read a dataset of it on this node")):
        told = scene.refused("arrays", scene.path(name))
        assert message in told, told
    scene.run("read_all")
    told = scene.refused("arrays", scene.path(), "--dataset", "/none")
    assert "no program has read /none on this node" in told, told


def chunks_are_drawn(scene):
    scene.run("read_all")
    picture = scene.work / "rows.png"
    line = [stage.under_cairn.CAIRN, "arrays", "--node", "n", scene.path(), "--png", picture]
    told = scene.refused("arrays", scene.path(), "--png", picture)
    assert "there are several" in told, told
    outcome = stage.under_cairn.execute([*line, "--dataset", "/packed"], scene.directory, SECONDS, scene.environment)
    if importlib.util.find_spec("matplotlib"):
        assert outcome.status == 0 and picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n", outcome.errors
    else:
        assert outcome.status != 0 and "matplotlib is missing: install" in outcome.errors, outcome.errors
    outcome = stage.under_cairn.execute([*line, "--dataset", "/packed"], scene.directory, SECONDS,
                                        {**scene.environment, "PATH": "/nonexistent"})
    assert outcome.status == 2 and "python3 cannot be started" in outcome.errors, outcome


def report_of(scene, program, *options):
    path = scene.work / "report.json"
    text = scene.run(program, "--report-json", path, *options)
    return text, json.loads(path.read_text())["report"]["arrays"]


def the_report_says_what_was_served_and_why_not(scene):
    text, arrays = report_of(scene, "read_all")
    named = {dataset["name"]: dataset for dataset in arrays["datasets"]}
    assert named["/packed"]["served_reads"] == 5 and named["/packed"]["file"] == str(scene.path()), named
    assert len(named) == 6 and (arrays["more"], arrays["may_be_served"]) == (0, 2), arrays
    assert "a.h5:/packed: 5 from chunks (62 %), 3 left to HDF5: " in text, text
    assert "left to HDF5, smaller than a MiB: a.h5:/small\n" in text, text
    assert "left to HDF5, chunks without filters: a.h5:/plain_chunks\n" in text, text
    # The node hears of what no program has closed as well; and a run hears of its own reads alone.
    _, arrays = report_of(scene, "end_by_itself")
    assert [(one["name"], one["served_reads"]) for one in arrays["datasets"]] == [("/packed", 2)], arrays
    text, arrays = report_of(scene, "hundreds")
    assert len(arrays["datasets"]) == 32 and arrays["more"] == 224, arrays
    assert arrays["not_served"] == {"smaller than a MiB": 256}, arrays
    assert "many.h5:/d0, many.h5:/d1, many.h5:/d10 and 253 more\n" in text, text
    assert len(text.splitlines()) < 12, text


def one_dataset_is_explained(scene):
    scene.run("read_all")
    text = scene.cairn("explain", "--node", "n", scene.path(), "--dataset", "/small")
    assert "/small: 100 cells of 8 B, contiguous\n  left to HDF5: smaller than a MiB\n" in text, text
    assert "1 left to HDF5" in text, text
    assert "no program has read /none" in scene.refused("explain", scene.path(), "--dataset", "/none")


def served_of_rows(scene, *hints):
    options = [word for hint in hints for word in ("--array", hint)]
    text, arrays = report_of(scene, "two_boxes", *options)
    rows, = arrays["datasets"]
    return rows["served_reads"], text, arrays["hints"]


def a_hint_gives_the_grid_before_any_read(scene):
    served, _, complaints = served_of_rows(scene, f"a.h5:/{ROWS}")
    assert served == 1 and not complaints, (served, complaints)
    rows = scene.arrays()["/fields/rows"]
    assert rows["chunk"] == [256, 256] and rows["cached_chunks"] >= 2, rows


def without_a_hint_two_reads_show_nothing(scene):
    served, _, complaints = served_of_rows(scene)
    assert served == 0 and not complaints, (served, complaints)
    assert "chunk" not in scene.arrays()["/fields/rows"]


def a_hint_for_a_running_node(scene):
    told = scene.cairn("declare", "--node", "n", "--array", f"{scene.path()}:/{ROWS} ghost=[0,0]")
    assert "declared: 1 array," in told, told
    served, _, complaints = served_of_rows(scene)
    assert served == 1 and not complaints, (served, complaints)
    scene.cairn("declare", "--node", "n", "--array", "a.h5:/packed chunk=[8,8,8]")
    scene.run("end_by_itself")
    assert any("is not used: its chunks in the file are packed" in text for text in scene.status()["warnings"])
    assert "nothing is declared" in scene.refused("declare")
    assert "no list of up to 32 numbers" in scene.refused("declare", "--array", "a.h5:/x chunk=8")


def a_rule_of_a_schema_gives_the_grid(scene):
    schema = scene.work / "schema.yaml"
    schema.write_text(f"rules:\n  - {{path: 'data/*.h5', array: '/{ROWS}'}}\n")
    _, arrays = report_of(scene, "two_boxes", "--schema", schema)
    rows, = arrays["datasets"]
    assert rows["served_reads"] == 1 and not arrays["hints"], arrays
    schema.write_text("rules:\n  - {path: none.h5, array: '/x chunk=[8]'}\n")
    _, arrays = report_of(scene, "two_boxes", "--schema", schema)
    assert len(arrays["hints"]) == 1 and "none.h5:/x" in arrays["hints"][0], arrays


def a_node_has_hints_of_its_schema_also_after_its_death(scene):
    schema = scene.work / "schema.yaml"
    schema.write_text(f"rules:\n  - {{path: '{scene.path()}', array: '/{ROWS}'}}\n")
    scene.cairn("down", "--node", "n")
    scene.up("--schema", schema)
    os.kill(scene.status()["service_pid"], signal.SIGKILL)
    served, _, _ = served_of_rows(scene)
    assert scene.status()["restarts"] == 1 and served == 1, served


def hints_and_orders_are_declared_together_or_not_at_all(scene):
    hint = f"a.h5:/{ROWS}"
    orders = scene.work / "orders"
    orders.write_text("this declares nothing that is known\n")
    told = scene.refused("declare", "--array", hint, orders)
    assert "one value" not in told and "declared:" not in told and "orders" in told, told
    served, _, _ = served_of_rows(scene)
    assert served == 0, "the hint has stayed"
    told = scene.refused("declare", "--array", "a.h5:/fields/rows chunk=[0,8]")
    assert "is left out: chunk of 0 cells" in told and "nothing is declared: no --array can be used" in told, told
    told = scene.refused("declare", "--array", f"a.h5:/fields/rows chunk=[{','.join(33 * '1')}]")
    assert "has no list of up to 32 numbers" in told, told
    orders.write_text(f"{scene.path('plain.txt')} torch-random seed=42 items=60 epochs=1 item-bytes=10\n")
    told = scene.cairn("declare", "--node", "n", "--array", hint, orders)
    assert "declared: 1 array," in told and "declared: 1 order," in told, told
    for arrays, said in (("a.h5:/x", "a list of texts"), ([7], "a list of texts"), (None, "a list of texts"),
                         ([hint, "a.h5:/x chunk=[0]"], "chunk of 0 cells")):
        answer = scene.asked({"command": "declare-arrays", "arrays": arrays})
        assert answer["kind"] == "error" and said in answer["message"], (arrays, answer)


def hints_below_links_match(scene):
    link = scene.work / "link"
    link.symlink_to(scene.directory)
    served, _, complaints = served_of_rows(scene, f"{link}/a*.h5:/{ROWS}")
    assert served == 1 and not complaints, (served, complaints)
    _, arrays = report_of(scene, "two_boxes_of_later", "--array", f"{link}/mine/later.h5:/{ROWS}")
    assert not arrays["hints"], arrays
    _, arrays = report_of(scene, "two_boxes", "--array", f"../link/*.h5:/{ROWS}")
    assert not arrays["hints"], arrays


def hints_that_are_too_many_are_in_the_report(scene):
    hints = [f"a.h5:/x{number} chunk=[8]" for number in range(258)]
    options = [word for hint in hints for word in ("--array", hint)]
    _, arrays = report_of(scene, "two_boxes", *options)
    refused = [said for said in arrays["hints"] if "is left out: there are 256 hints" in said]
    assert [said.split('"')[1] for said in refused] == [f"{hint} ghost=[0]" for hint in hints[256:]], refused


def a_hint_outlives_the_service(scene):
    scene.cairn("declare", "--node", "n", "--array", f"a.h5:/{ROWS}")
    os.kill(scene.status()["service_pid"], signal.SIGKILL)
    served, _, complaints = served_of_rows(scene)
    assert scene.status()["restarts"] == 1 and served == 1 and not complaints, (served, complaints)


def hints_that_fit_nothing_are_named_and_the_run_goes_on(scene):
    for hint, said in (
            ("a.h5:/none chunk=[256,256]", "matched nothing: no dataset /none of the file was read"),
            ("b.h5:/x chunk=[256,256]", "matched nothing: no HDF5 file of that name was read"),
            ("a.h5:/fields/rows chunk=[1,1]", "its chunks have 4 B: to gather those of less than 64 KiB takes longer"),
            ("a.h5:/fields/rows chunk=[256]", "the array has 2 dimensions; give as many numbers"),
            ("a.h5:/fields/rows chunk=[4096,256]", "chunk of 4096 cells in dimension 0: the array has 2048")):
        _, text, complaints = served_of_rows(scene, hint)
        assert len(complaints) == 1 and said in complaints[0] and hint[5:] in complaints[0], complaints
        assert f"warning   {complaints[0]}" in text and "exit status 0" in text, text
    # These are known before the program begins.
    for hint, said in (("a.h5:/fields/rows chunk=[0,256]", "chunk of 0 cells in dimension 0"),
                       ("a.h5:/fields/rows chunk=[256,256] ghost=[1,257]", "wider than a chunk"),
                       ("a.h5:/fields/rows chunk=[256,256] ghost=[1]", "one for each dimension")):
        _, text, complaints = served_of_rows(scene, hint)
        assert said in text and "is left out" in text and not complaints, (text, complaints)
    for hint, said in (("a.h5:/fields/rows", "there is no \"chunk=\""),
                       ("a.h5:/fields/rows chunk=[8,8] gohst=[1,1]", "\"gohst=[1,1]\" is neither \"chunk=[...]\"")):
        told = refused_run(scene, "run", "--array", hint, "true")
        assert said in told, told


def refused_run(scene, command, *words):
    line = [stage.under_cairn.CAIRN, command, "--node", "n", *words]
    outcome = stage.under_cairn.execute(line, scene.directory, SECONDS, scene.environment)
    assert outcome.status == 2, (outcome.status, outcome.output, outcome.errors)
    return outcome.errors


def a_wrong_hint_does_not_stay(scene):
    _, arrays = report_of(scene, "read_all", "--array", "a.h5:/fields/rows chunk=[100,300]")
    assert not arrays["hints"], arrays
    rows = scene.arrays()["/fields/rows"]
    assert rows["chunk"] == [256, 256] and rows["ghost_before"] == [2, 2] and rows["served_reads"] >= 16, rows


SCENES = (datasets_are_as_the_file_has_them, chunks_of_an_earlier_shape_are_shown, each_read_counts_once,
          what_is_written_is_left_to_hdf5, what_others_may_write_is_left_to_hdf5,
          a_process_tells_of_a_bounded_number, a_close_loses_nothing_in_a_burst,
          datasets_that_come_and_go_keep_their_names, datasets_of_one_name_are_one_list,
          the_chunks_of_one_answer_are_bounded, a_name_that_is_no_text_is_found, what_cannot_be_shown_is_named,
          chunks_are_drawn, the_report_says_what_was_served_and_why_not, one_dataset_is_explained,
          a_hint_gives_the_grid_before_any_read, without_a_hint_two_reads_show_nothing, a_hint_for_a_running_node,
          a_rule_of_a_schema_gives_the_grid, a_node_has_hints_of_its_schema_also_after_its_death,
          hints_and_orders_are_declared_together_or_not_at_all, hints_below_links_match,
          hints_that_are_too_many_are_in_the_report, a_hint_outlives_the_service,
          hints_that_fit_nothing_are_named_and_the_run_goes_on,
          a_wrong_hint_does_not_stay)


def main():
    stage.need_plugin()
    python = stage.interpreter()

    def play(scene):
        with Scene(python) as node:
            scene(node)

    return stage.play_scenes(SCENES, play)


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
