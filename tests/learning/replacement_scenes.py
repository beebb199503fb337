# SPDX-License-Identifier: Apache-2.0
"""Which blocks leave RAM: an expert that has learned how programs read keeps more of what they come back to."""

import subprocess

from stage import BLOCK, MIB, Stage, under_cairn

NO_PREFETCH = "prefetch:\n  budget: 0\n"
ROUNDS = 8
RAM_MIB = 32
FILE_MIB = 48


def expert(name):
    return f"replacement:\n  expert: {name}\n"


def hit_bytes_of_a_loop(name):
    with Stage(config=NO_PREFETCH + expert(name), ram=f"{RAM_MIB}M") as stage:
        blocks = FILE_MIB * MIB // BLOCK
        path = stage.make("looped", FILE_MIB)
        stage.read_in_order(path, list(range(blocks)) * ROUNDS, compute_us=200)
        counters = stage.counter("read_hit_bytes_ram"), stage.counter("read_miss_bytes")
        assert sum(counters) == ROUNDS * FILE_MIB * MIB, stage.status()["counters"]
        assert stage.status()["fetches"] == []
        return counters[0]


def a_loop_larger_than_ram():
    """Whoever evicts the oldest of it has nothing of what comes next, for ever."""
    oldest, learned = hit_bytes_of_a_loop("oldest-first"), hit_bytes_of_a_loop("ws-plus")
    read = ROUNDS * FILE_MIB * MIB
    said = f"from RAM: {learned / MIB:.0f} MiB with ws-plus, {oldest / MIB:.0f} MiB with oldest-first, " \
           f"of {read / MIB:.0f} MiB"
    print(said, flush=True)
    assert learned >= 1.3 * oldest and learned - oldest >= 0.1 * read, said


def experts_are_reported():
    with Stage(tier="32M", ram="16M") as stage:
        path = stage.make("read", 24)
        stage.read_in_order(path, list(range(24 * MIB // BLOCK)) * 2, compute_us=100)
        stage.cairn("heatmap", "--node", "n", path)  # by then all events have come
        lines = stage.status()["replacement"]
        assert {line["tier"] for line in lines} == {"ram", "tier1"}, lines
        for line in lines:
            assert line["expert"] == "ws-plus", line
            assert line["follows"] in ("learned", "s3-fifo", "lirs", "lru"), line
            # A segment that is read in several pieces is one reference.
            assert 24 <= line["references"] and 0 < line["misses"] <= line["references"], line
        # All that was read has room in both tiers together: nothing is missed twice.
        by_tier = {line["tier"]: line for line in lines}
        assert by_tier["tier1"]["misses"] <= by_tier["tier1"]["references"] / 2 + 1, lines
        assert by_tier["tier1"]["misses"] <= by_tier["ram"]["misses"], lines
    with Stage(config=expert("lru")) as stage:
        path = stage.make("read", 16)
        stage.read_in_order(path, range(16), compute_us=0)
        stage.cairn("heatmap", "--node", "n", path)
        [line] = stage.status()["replacement"]
        assert line["expert"] == "lru" and line["follows"] == "lru" and line["tier"] == "ram", line
    with Stage(config=expert("oldest-first")) as stage:
        path = stage.make("read", 16)
        stage.read_in_order(path, range(16), compute_us=0)
        stage.cairn("heatmap", "--node", "n", path)
        assert stage.status()["replacement"] == [], "nothing is learned"


def unknown_expert_is_refused():
    work = under_cairn.work_directory("learning-refused")
    (work / "run").mkdir(mode=0o700)
    (work / "cairn.yaml").write_text(expert("clairvoyant"))
    environment = under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(work / "run")})
    by_variable = {**environment, "CAIRN_REPLACEMENT_EXPERT": "clairvoyant"}
    for variables, options in ((environment, ("--config", work / "cairn.yaml")), (by_variable, ())):
        words = [under_cairn.CAIRN, "up", "--name", "n", "--ram", "16M", "--tier", "none", *options]
        done = subprocess.run([str(word) for word in words], cwd=work, env=variables, text=True, capture_output=True,
                              timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == 2, f"{done.returncode}: {done.stderr}"
        for word in ("clairvoyant", "ws-plus", "oldest-first"):
            assert word in done.stderr, done.stderr
        assert "replacement.expert" in done.stderr or "CAIRN_REPLACEMENT_EXPERT" in done.stderr, done.stderr
    under_cairn.remove(work)


SCENES = [a_loop_larger_than_ram, experts_are_reported, unknown_expert_is_refused]
