# SPDX-License-Identifier: Apache-2.0
"""What runs while tests/faults/crash_points.py kills: a dozen workloads, and what each of them must find afterwards.

A workload is a function of the driver's options and the directory of its logs, which no death reaches; it gives its
command line. Those of DURABLE_CHECKS run on a durable tier: what is durable by their logs, `cairn recover` brings back.
"""

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import under_cairn
from record_logs import check_bytes, replay, states_since_durable

RECOVERY_SECONDS = 120
EXIT_NOT_STORED = 74
ROWS, VERSIONS, LAST_NUMBER, COMMITS = 6, 8, 3000, 4


def records(options, logs, steps=60):
    return [options.worker, logs, options.seed, 3, steps]


def durable_records(options, logs):
    """With a durable tier, and synced often: a service that dies with its keeper leaves all that to `cairn recover`."""
    return records(options, logs, steps=120) + ["--durable"]


def durable_database(_options, logs):
    """Each row is counted in a log when its transaction is done."""
    return ["sh", "-c", "sqlite3 d 'create table t(n integer primary key, s text)'; n=0; "
            f'while [ $n -lt {ROWS} ]; do n=$((n + 1)); sqlite3 d "insert into t(s) values(hex(zeroblob($n * 500)))" '
            '&& echo $n >>"$1/acknowledged"; done; sqlite3 d "select count(*), sum(length(s)) from t"', "sh", logs]


def durable_replacing(_options, logs):
    """A file is replaced by another one that nobody has synced."""
    return ["sh", "-c", f'n=1; seq 1 {LAST_NUMBER} >file; sync file && echo 1 >"$1/acknowledged"; '
            f'while [ $n -lt {VERSIONS} ]; do n=$((n + 1)); seq $n {LAST_NUMBER} >fresh && '
            'mv fresh file && echo $n >>"$1/acknowledged"; done; cksum <file', "sh", logs]


def durable_commits(_options, logs):
    """A repository whose every file is synced; nothing in it depends on the hour, but for its index."""
    # No other repository, where this one has none to show.
    script = ('export GIT_DIR="$PWD/.git" GIT_WORK_TREE="$PWD"; '
              'export HOME=/ GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE="@1 +0000" GIT_COMMITTER_DATE="@1 +0000"; '
              'git() { command git -c core.fsync=all -c user.name=n -c user.email=e "$@"; }; '
              'git init -q --template= -b main && sync .git/HEAD .git/config || exit; '
              f'n=0; while [ $n -lt {COMMITS} ]; do n=$((n + 1)); '
              'seq $n 2000 >numbers; git add numbers && git commit -q -m $n && echo $n >>"$1/acknowledged"; done; '
              'rm .git/index; git rev-parse HEAD')
    return ["sh", "-c", script, "sh", logs]


def small_files(_options, _logs):
    return ["sh", "-c", "for n in 1 2 3 4 5 6 7 8; do echo line $n >f$n; cat f$n >>all; rm -f gone; echo x >gone; "
            "mv gone moved; done; exec 3>nameless; echo x >&3; rm nameless; echo y >&3; exec 3>&-; cat all | cksum"]


def appending(_options, _logs):
    """Four writers at the end of one file, each line in one write: none is lost, torn, or there twice."""
    return ["sh", "-c", "for w in 1 2 3 4; do (n=0; while [ $n -lt 150 ]; do n=$((n + 1)); echo writer $w, line $n; "
            "done >>all) & done; wait; sort -o all all; uniq -d all; cksum <all"]


def cutting(_options, _logs):
    """A file cut, made longer, with holes, and written over in the middle."""
    return ["sh", "-c", "seq 1 60000 >c; truncate -s 200001 c; truncate -s 400003 c; fallocate -p -o 8192 -l 65536 c; "
            "seq 7 3000 | dd of=c bs=4k seek=90 conv=notrunc status=none; cp --sparse=always c copy; "
            "truncate -s 100 c; cat c >>copy; cksum c copy"]


@functools.cache
def still_sources():
    """Files to copy that stay as they are for as long as this runs, whoever works on the project meanwhile."""
    kept = tempfile.TemporaryDirectory(prefix="cairn-sources-")
    shutil.copytree(Path(__file__).resolve().parents[2] / "src/memory/arena", Path(kept.name) / "arena")
    return kept


def copying(_options, _logs):
    source = Path(still_sources().name) / "arena"
    script = ('cp -r "$1" a; tar --mtime=@0 --sort=name -cf t.tar a; tar -xf t.tar --one-top-level=b; '
              'cat b/a/*.h | cksum')
    return ["sh", "-c", script, "sh", str(source)]


def database(_options, _logs):
    return ["sh", "-c", "sqlite3 d 'create table t(n integer primary key, s text)'; for n in 1 2 3 4 5 6; do "
            "sqlite3 d \"insert into t(s) values(hex(zeroblob($n * 500)))\"; done; "
            "sqlite3 d 'pragma integrity_check; select count(*), sum(length(s)) from t'"]


def mapping(options, _logs):
    worker = options.worker
    return ["sh", "-c", f'"{worker}" --map m 300000; cat m | cksum; "{worker}" --map m 100000; cat m | cksum']


def recovering(_options, _logs):
    """On a tier with the log of a node that died: what it owes is there before anybody reads."""
    return ["sh", "-c", "touch begun; cat owed*; for n in 1 2 3; do echo more >>owed$n; sync owed$n; done; cat owed*"]


def owed_texts():
    return {f"owed{n}": "0123456789" + f"{n}" * 5000 for n in (1, 2, 3)}


def leave_owed(stage):
    for name, text in owed_texts().items():
        (stage.data / name).write_text(text)


def leave_log(stage):
    words = []
    for name, text in owed_texts().items():
        (stage.data / name).write_text(text[:10])
        words += [stage.data / name, "10", text[10:]]
    subprocess.run([under_cairn.BUILD / "tests/durable_write_log", stage.work / "tier", *words], check=True)


def recover(stage):
    stage.await_end_of_services()
    done = under_cairn.execute([under_cairn.CAIRN, "recover", stage.work / "tier"], "/", RECOVERY_SECONDS)
    # Programs that began when the node was dead have replaced files without a word: what these held is saved.
    is_saved = done.status == EXIT_NOT_STORED and stage.workload is not durable_records and \
        "; saved as " in done.errors and \
        all("; saved as " in line for line in done.errors.splitlines() if " recovered " not in line)
    assert done.status == 0 or is_saved, f"cairn recover: {done} {done.output} {done.errors}"


def acknowledged(stage):
    log = stage.logs / "acknowledged"
    return int(log.read_text().split()[-1]) if log.exists() else 0


def output_of(*command):
    return subprocess.run(command, text=True, capture_output=True, check=False)


def check_database(stage):
    if acknowledged(stage) == 0:
        return
    recover(stage)
    query = "pragma integrity_check; select count(*) from t"
    found = output_of("sqlite3", stage.data / "d", query).stdout.split()
    assert found[:1] == ["ok"] and int(found[1]) >= acknowledged(stage), f"{found}, not {acknowledged(stage)} rows"


def check_replaced(stage):
    if acknowledged(stage) == 0:
        return
    recover(stage)
    found = (stage.data / "file").read_text()
    possible = range(acknowledged(stage), VERSIONS + 1)
    assert any(found == "".join(f"{line}\n" for line in range(n, LAST_NUMBER + 1)) for n in possible), \
        f"{len(found)} bytes, none of the versions {possible}: {found[:100]!r}"


def check_commits(stage):
    """The last commit that was told is there, and every object of it whole."""
    if acknowledged(stage) == 0:
        return
    recover(stage)
    in_data = ("git", "-c", "safe.directory=*", "--git-dir", stage.data / ".git")
    counted = output_of(*in_data, "rev-list", "--count", "main")
    assert counted.returncode == 0 and int(counted.stdout) >= acknowledged(stage), \
        f"not {acknowledged(stage)} commits: {counted.stdout}{counted.stderr}"
    numbers = output_of(*in_data, "show", f"main~{int(counted.stdout) - acknowledged(stage)}:numbers").stdout
    assert numbers == "".join(f"{line}\n" for line in range(acknowledged(stage), 2001)), numbers[:100]
    # Without the index, which `git reset` makes again.
    (stage.data / ".git/index").unlink(missing_ok=True)
    whole = output_of(*in_data, "fsck", "--full", "--strict")
    assert whole.returncode == 0, whole.stdout + whole.stderr


def check_durable(stage):
    """What the log brings back is as new as the last fsync, byte by byte, and as whole."""
    known = {log.name: states_since_durable(log.read_text().splitlines()) for log in stage.logs.iterdir()}
    durable = {name: states for name, states in known.items() if states is not None}
    if not durable:
        return  # there may be no tier yet
    recover(stage)
    for name, states in durable.items():
        check_bytes(name, bytes_of(stage.data / name), states)


def check_records(stage):
    """Each file holds what its log says; the step that was under way may be there or not, byte by byte."""
    for log in sorted(stage.logs.iterdir()):
        before, after = replay(log.read_text().splitlines())
        found = bytes_of(stage.data / log.name)
        if found not in (before, after):
            check_bytes(log.name, found, (before, after))


def bytes_of(path):
    return path.read_bytes() if path.exists() else b""


WORKLOADS = [records, durable_records, durable_database, durable_replacing, durable_commits, small_files, appending,
             cutting, copying, database, mapping, recovering]
# Prepares the files for a native run, and for one under a node.
LEFT = {recovering: (leave_owed, leave_log)}
RECORDS = (records, durable_records)
DURABLE_CHECKS = {durable_records: check_durable, durable_database: check_database,
                  durable_replacing: check_replaced, durable_commits: check_commits}
DURABLE = (recovering, *DURABLE_CHECKS)
NEEDS = {database: "sqlite3", durable_database: "sqlite3", durable_commits: "git"}
