#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ROMIO's own test programs, natively and under Cairn: the same words, the same exit status, the same files.

    romio.py FAMILY [PROGRAM...]

Their source is Debian's of MPICH. What they say of a library that natively fails them is compared too.
"""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import stage  # noqa: E402
import under_cairn  # noqa: E402

FETCH_SECONDS = 150
FOLDER = "src/mpi/romio/test/"
# The programs with their ranks, as ROMIO's runtests starts them, and how each takes the name of its file.
PROGRAMS = {
    "simple": (4, "-fname"), "psimple": (4, "-fname"), "async": (4, "-fname"), "async-multiple": (4, "-fname"),
    "atomicity": (4, "-fname"), "coll_test": (4, "-fname"), "excl": (4, "-fname"), "creat_excl": (4, "-fname"),
    "file_info": (4, "-fname"), "i_noncontig": (2, "-fname"), "noncontig": (2, "-fname"),
    "noncontig_coll": (2, "-fname"), "noncontig_coll2": (4, "-fname"), "misc": (4, "-fname"),
    "shared_fp": (4, "-fname"), "ordered_fp": (4, "-fname"), "split_coll": (4, "-fname"), "error": (1, "-fname"),
    "status": (1, "-fname"),
    "aggregation1": (4, "-f"), "aggregation2": (4, None), "hindexed": (4, None), "types_with_zeros": (2, None),
    "darray_read": (4, None), "external32": (1, None),
}
# What these write depends on who is first, or was never set to anything: only names and sizes are compared.
UNSETTLED = {"shared_fp", "status"}
# What OMPIO does natively wrong, now and then, and says so.
WRONG = {("openmpi", "atomicity")}
# OMPIO has no external32. Any other program that fails natively has not been tested.
FAILS = WRONG | {("openmpi", "external32")}


def sources():
    """The folder of the programs' sources, unpacked once."""
    with stage.kept_folder() as kept:
        folder = kept / "romio"
        if not (folder / "complete").exists():
            fetch = under_cairn.SOURCE / "tests/programs/fetch_source.sh"
            found = subprocess.run([fetch, "mpich"], capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
            if found.returncode != 0:
                stage.skip("the sources of mpich cannot be had here")
            folder.mkdir(exist_ok=True)
            unpack(Path(found.stdout.strip()), folder)
            (folder / "complete").touch()
        return folder


def unpack(archive, folder):
    with tarfile.open(archive) as members:
        for member in members:
            path = member.name.partition("/")[2]
            if path.startswith(FOLDER) and re.search(r"\.c(\.in)?$", path):
                # What configure would put into the places that are left for it.
                text = members.extractfile(member).read().decode().replace("%@LL@", "%ll")
                (folder / Path(path).name.removesuffix(".in")).write_text(text)


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in stage.FAMILIES:
        sys.exit(__doc__)
    family = sys.argv[1]
    stage.need(family)
    folder = sources()
    failed = 0
    for name in sys.argv[2:] or PROGRAMS:
        ranks, word = PROGRAMS[name]
        program = stage.build(family, folder / f"{name}.c", ["-include", HERE / "no_markers.h"])
        work = under_cairn.work_directory(f"romio-{name}")
        line = stage.command(family, ranks, program, *([word] if word else []), "file")
        alone, problem = stage.compare(family, line, work, says=(family, name) not in WRONG,
                                       settled=name not in UNSETTLED)
        if alone.status != 0 and (family, name) not in FAILS:
            problem = f"natively: {alone}: {alone.output[-400:]}{alone.errors[-400:]}\n{problem}"
        failed += bool(problem)
        print(f"FAILED {name}, kept {work}:\n{problem}" if problem else f"passed {name}: natively {alone}", flush=True)
        if not problem:
            under_cairn.remove(work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
