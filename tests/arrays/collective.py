#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that read one file together, with a parallel HDF5 and the MPI that the command line names: some have their
cells in the tiers and some have not, one is late, one is killed. No read waits without end, all cells are right, and
where each rank has its own nobody asks HDF5. The program is collective_reads.cc."""

import importlib.util
import sys

import stage
import under_cairn

SECONDS = 120
# Its name is that of the one beside this file.
_OF_MPI = importlib.util.spec_from_file_location("mpi_stage", stage.HERE.parent / "mpi/stage.py")
mpi = importlib.util.module_from_spec(_OF_MPI)
_OF_MPI.loader.exec_module(mpi)


class Scene:
    """A folder with the file, and the program in it."""

    def __init__(self, family):
        self.family = family
        self.folder = stage.made_hdf5(family)
        self.program = mpi.build(family, stage.HERE / "collective_reads.cc", ending=".hdf5", options=[
            f"-I{self.folder}/include", f"-L{self.folder}", f"-Wl,-rpath,{self.folder}", "-Wl,--no-as-needed",
            "-lhdf5"])
        self.work = under_cairn.work_directory("collective")
        self.run_natively(1, "write")

    def run(self, ranks, part, options=(), launcher=(), **variables):
        line = [*launcher, *mpi.command(self.family, ranks, self.program, part, "file.h5")]
        return self.told(under_cairn.cairn_command(line, self.work, options=options), variables)

    def run_natively(self, ranks, part):
        return self.told(mpi.command(self.family, ranks, self.program, part, "file.h5"), {})

    def told(self, line, variables):
        """{round: whether HDF5 has read, each time}, as rank 0 prints it; "status" is there if it is not 0."""
        outcome = under_cairn.execute(line, self.work, SECONDS, mpi.environment(self.family, **variables))
        assert not outcome.timed_out, f"hangs: {line}"
        rounds = {}
        for sentence in outcome.output.splitlines():
            what, _, how = sentence.rpartition(": ")
            if how in ("HDF5 reads", "nobody asks HDF5"):
                rounds.setdefault(what, []).append(how == "HDF5 reads")
        if outcome.status != 0:
            rounds["status"] = outcome.status
        assert "HDF5-DIAG" not in outcome.errors, outcome.errors[-2000:]
        assert "status" not in rounds or "dies" in line, f"{outcome}: {outcome.output[-500:]}{outcome.errors[-2000:]}"
        return rounds


def every_pattern(scene):
    """b: a box, which can be served; p: pieces of two, which can not; -: nothing."""
    for ranks in (2, 3, 4):
        found = scene.run(ranks, "patterns")
        packed = {what.split()[1]: reads for what, reads in found.items() if what.startswith("packed")}
        assert len(packed) == (3 ** ranks if ranks < 4 else 2 ** ranks), packed
        for pattern, reads in packed.items():
            assert reads == [("p" in pattern)] * 2, f"{ranks} ranks, {pattern}: {reads}"
    native = scene.run_natively(2, "patterns")
    assert native["packed bb"] == [True, True], native


def a_rank_is_late(scene):
    assert scene.run(3, "late") == {"late": [False] * 3}


def a_rank_is_killed(scene):
    natively, found = scene.run_natively(3, "dies"), scene.run(3, "dies")
    assert found["before"] == [False] and "after" not in found, found
    assert natively["status"] != 0 and found["status"] != 0, (natively, found)


def several_datasets_in_a_call(scene):
    scene.run(3, "several")


def ranks_also_read_alone(scene):
    scene.run(3, "mixed")


def a_dataset_outlives_its_file(scene):
    assert scene.run(2, "closed") == {"open": [False], "closed": [False]}


def one_rank_holds_the_closed_file(scene):
    assert scene.run(2, "held") == {"held": [False]}


def a_transfer_list_is_used_again(scene):
    assert scene.run(2, "reused") == {"reused": [False, True, False, False]}


def a_type_with_a_name(scene):
    assert scene.run(2, "named") == {"named": [False, False]}


def properties_say_what_to_read(scene):
    scene.run(2, "plist")


def metadata_is_read_together(scene):
    assert scene.run(2, "metadata") == {"metadata": [True]}


def one_rank_opens_the_file_for_itself(scene):
    scene.run(2, "by_one")


def without_arrays_hdf5_reads(scene):
    assert scene.run(2, "late", options=["--arrays", "off"]) == {"late": [True] * 2}


def what_ranks_may_not_agree_on_is_hdf5s(scene):
    assert scene.run(2, "late", CAIRN_MPI="off") == {"late": [True] * 2}


def a_rank_without_a_node_has_nothing(scene):
    """The socket of its node is not there. Its connector votes nevertheless."""
    lost = ["env", "CAIRN_SOCKET=/nonexistent/client.sock", scene.program, "late", "file.h5"]
    line = mpi.command(scene.family, 1, scene.program, "late", "file.h5") + [":", "-n", "1", *lost]
    found = scene.told(under_cairn.cairn_command(line, scene.work), {})
    assert found == {"late": [True] * 2}, found


SCENES = [every_pattern, a_rank_is_late, a_rank_is_killed, several_datasets_in_a_call, ranks_also_read_alone,
          a_dataset_outlives_its_file, one_rank_holds_the_closed_file, a_transfer_list_is_used_again,
          a_type_with_a_name, properties_say_what_to_read, metadata_is_read_together,
          one_rank_opens_the_file_for_itself, without_arrays_hdf5_reads, what_ranks_may_not_agree_on_is_hdf5s,
          a_rank_without_a_node_has_nothing]


def main():
    family = sys.argv.pop(1)
    stage.need_plugin()
    mpi.need(family)
    scene = Scene(family)
    status = stage.play_scenes(SCENES, lambda play: play(scene))
    under_cairn.remove(scene.work)
    return status


if __name__ == "__main__":
    sys.exit(main())
