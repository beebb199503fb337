#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets that are read under `cairn run`, from chunks in the tiers, with stock wheels.

No variable names the connector: HDF5 finds it because the node's library answers for it. A scene is a function of
served_programs.py; its outputs under Cairn and natively have to be the same, and the node has to say that chunks were
served, or that none was.
"""

import json
import sys
import time

import stage
import under_cairn

SECONDS = 240
# The RAM tier is smaller than what is unpacked: chunks come and go.
SMALL = ["2M"]
# Scene, options of `cairn run` beside the usual ones, and whether chunks are to be served, or how many bytes at least.
SCENES = [
    ("selections", [], True),
    ("selections", SMALL, None),
    ("selections", ["--arrays", "off"], False),
    ("datasets_of_many_kinds", [], True),
    ("three_libraries", [], True),
    ("processes_share_chunks", [], True),
    ("forked_readers", [], True),
    ("files_that_change_meanwhile", [], True),
    ("a_file_that_is_also_written", [], None),
    ("a_dataset_that_grows", [], None),
    ("unfiltered_datasets", [], False),
    ("a_reader_that_stays", [], True),
    ("chunks_without_content", [], False),
    ("cells_that_were_never_written", [], False),
    ("files_of_one_name", [], True),
    ("a_memory_file", [], None),
    ("boxes_of_four_processes", [], True),
    ("boxes_of_four_processes", SMALL, None),
    ("boxes_of_four_processes", ["--arrays", "off"], False),
    ("boxes_of_a_file_that_changes", [], True),
    ("a_file_that_another_process_may_write", [], False),
    ("a_writer_that_is_killed", [], True),
    # The whole boxes alone are 17 MB.
    ("parts_of_gathered_boxes", [], 50_000_000),
    ("parts_of_gathered_boxes", SMALL, None),
    # Each pass reads 64 MiB.
    ("thirty_two_dimensions", [], 60_000_000),
]


def run(python, name, directory, options=None):
    """(outcome, bytes of chunks that were served) of the scene's program."""
    command = [python, stage.HERE / "served_programs.py", name]
    environment = under_cairn.clean_environment({"PYTHONDONTWRITEBYTECODE": "1"})
    if options is None:
        return under_cairn.execute(command, directory, SECONDS, environment), 0
    report = directory.parent / f"{directory.name}.json"
    ram = SMALL[0] if options is SMALL else "256M"
    more = [] if options is SMALL else options
    line = under_cairn.cairn_command(command, directory, ram=ram, options=[*more, "--report-json", str(report)])
    outcome = under_cairn.execute(line, directory, SECONDS, environment)
    served = json.loads(report.read_text())["report"]["array_bytes"] if report.exists() else 0
    report.unlink(missing_ok=True)
    return outcome, served


def play(python, name, options, is_served):
    began = time.monotonic()
    natively, under = (under_cairn.work_directory("arrays") for _ in range(2))
    native, _ = run(python, name, natively)
    cairn, served = run(python, name, under, options)
    problems = []
    if native.status != 0:
        problems.append(f"natively: {native} {native.errors[-3000:]}")
    if cairn.status != 0 or cairn.output != native.output:
        problems.append(f"under Cairn: {cairn} {cairn.output[-2000:]} {cairn.errors[-3000:]}")
        problems.append(f"natively {native.output[-2000:]}")
    is_as_wanted = is_served is None or (served >= is_served if is_served > 1 else is_served == (served > 0))
    if not is_as_wanted:
        problems.append(f"{served} bytes of chunks were served")
    print(f"{name} {' '.join(options)}: {'FAILED' if problems else 'ok'}, {served} bytes served "
          f"({time.monotonic() - began:.1f} s)", *problems, sep="\n  ", flush=True)
    for directory in (natively, under):
        under_cairn.remove(directory)
    return not problems


def hdf5_is_as_it_was(python):
    """What a program may ask of HDF5 and its libraries about plugins, and how many it may start."""
    directory = under_cairn.work_directory("arrays")
    program = f"""
import ctypes, glob, os, shutil, sys
import h5py
print([h5py.h5pl.get(number) for number in range(h5py.h5pl.size())])
print([name for name in os.environ if name.startswith("HDF5")])
library, = glob.glob(os.path.dirname(h5py.__file__) + ".libs/libhdf5-*")
copies = [shutil.copy(library, f"libhdf5-copy{{number}}.so") for number in range(6)]
print([ctypes.CDLL(os.path.abspath(copy)).H5open() for copy in copies])
"""
    outputs = [under_cairn.execute(command, directory, SECONDS).output for command in (
        [python, "-c", program], under_cairn.cairn_command([python, "-c", program], directory))]
    quiet = "import h5py; h5py.File('a', 'w').close()"
    environment = under_cairn.clean_environment({"HDF5_PLUGIN_PRELOAD": "::"})
    without = under_cairn.execute(under_cairn.cairn_command([python, "-c", quiet], directory), directory, SECONDS,
                                  environment)
    is_passed = outputs[0] == outputs[1] != "" and without.status == 0
    print(f"HDF5 is as it was: {'ok' if is_passed else f'FAILED: {outputs} {without}'}", flush=True)
    under_cairn.remove(directory)
    return is_passed


def fetched_by_advice(report):
    return sum(fetch["fetched_bytes"] for fetch in report["fetches"] if fetch["predictor"] == "advised")


def rows_are_fetched_ahead(python):
    """The connector knows which rows come next; without it nobody says so."""
    directory = under_cairn.work_directory("arrays")
    make = ("import h5py, numpy; f = h5py.File('rows.h5', 'w'); "
            "f['x'] = numpy.arange(1 << 22, dtype='f4').reshape(2048, -1)")
    under_cairn.execute([python, "-c", make], directory, SECONDS)
    fetched, outputs = [], set()
    for arrays in ("on", "off"):
        report = directory.parent / f"{directory.name}.json"
        command = [python, stage.HERE / "served_programs.py", "rows_in_boxes"]
        outcome = under_cairn.execute(under_cairn.cairn_command(
            command, directory, options=["--arrays", arrays, "--report-json", str(report)]), directory, SECONDS)
        fetched.append(fetched_by_advice(json.loads(report.read_text())["report"]))
        outputs.add((outcome.status, outcome.output))
        report.unlink()
    is_passed = len(outputs) == 1 and fetched[0] > 4 << 20 and fetched[1] == 0
    print(f"rows are fetched ahead: {'ok' if is_passed else f'FAILED: {outputs}'}, {fetched} bytes", flush=True)
    under_cairn.remove(directory)
    return is_passed


def rows_are_written_once(python):
    """A dataset that is written row by row has room for the chunks of a row: none is read and written for each."""
    natively, under = (under_cairn.work_directory("arrays") for _ in range(2))
    command = [python, stage.HERE / "served_programs.py", "rows_of_large_chunks"]
    report = under.parent / f"{under.name}.json"
    native = under_cairn.execute(command, natively, SECONDS)
    outcome = under_cairn.execute(under_cairn.cairn_command(command, under, options=["--report-json", str(report)]),
                                  under, SECONDS)
    written = json.loads(report.read_text())["report"]["written_bytes"]
    report.unlink()
    # 16 MiB as they are, and what is packed of them. Without room it is 128 MiB.
    is_passed = outcome.status == 0 and outcome.output == native.output and written < 40 << 20
    print(f"rows are written once: {'ok' if is_passed else f'FAILED: {outcome} {native}'}, {written} bytes", flush=True)
    for directory in (natively, under):
        under_cairn.remove(directory)
    return is_passed


def the_next_run_knows_the_boxes(python):
    """From the first of them on, unless nothing is to be remembered."""
    work = under_cairn.work_directory("arrays")
    directory, report = work / "data", work / "report"
    directory.mkdir()
    make = "import h5py, numpy; h5py.File('a', 'w')['x'] = numpy.arange(1 << 20).reshape(1024, -1)"
    under_cairn.execute([python, "-c", make], directory, SECONDS)
    time.sleep(0.1)

    def served(boxes, pause, remember):
        environment = under_cairn.clean_environment({"CAIRN_PREFETCH_REMEMBER": str(remember)})
        command = [python, stage.HERE / "served_programs.py", "first_boxes", boxes, pause]
        line = under_cairn.cairn_command(command, directory, options=["--report-json", str(report)])
        outcome = under_cairn.execute(line, directory, SECONDS, environment)
        assert outcome.status == 0, f"{outcome} {outcome.errors}"
        return json.loads(report.read_text())["report"]["array_bytes"]

    # Three are too few to learn from.
    bytes_served = [served(boxes, pause, remember) for boxes, pause, remember in (
        (3, 0.3, "none"), (16, 0.02, work / "known"), (3, 0.3, work / "known"))]
    # Boxes are of half a MiB.
    is_passed = bytes_served[0] == 0 and bytes_served[1] > 0 and bytes_served[2] > 1 << 20
    print(f"the next run knows the boxes: {'ok' if is_passed else 'FAILED'}, {bytes_served} bytes", flush=True)
    under_cairn.remove(work)
    return is_passed


def main():
    stage.need_plugin()
    python = stage.interpreter()
    wanted = [scene for scene in SCENES if len(sys.argv) < 2 or scene[0] in sys.argv[1:]]
    passed = [play(python, *scene) for scene in wanted]
    for scene in (rows_are_fetched_ahead, rows_are_written_once, the_next_run_knows_the_boxes, hdf5_is_as_it_was):
        if len(sys.argv) < 2 or scene.__name__ in sys.argv[1:]:
            passed.append(scene(python))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
