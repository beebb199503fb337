# SPDX-License-Identifier: Apache-2.0
"""Processes that work side by side and meet at a barrier, for workers written in Python."""
import multiprocessing
import sys


def run(count: int, work) -> list:
    """Calls work(number, barrier) in so many processes; returns what each returned, in the order of the numbers."""
    # Forked, as the other workers do: there are no threads yet that a fork would lose.
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(count)
    team = []
    for number in range(count):
        source, sink = context.Pipe(duplex=False)
        child = context.Process(target=_run_one, args=(work, number, barrier, sink))
        child.start()
        sink.close()
        team.append((child, source))
    try:
        results = [source.recv() for _, source in team]
    except EOFError:
        sys.exit("a process of the team failed")
    for child, _ in team:
        child.join()
    return results


def _run_one(work, number: int, barrier, sink) -> None:
    try:
        sink.send(work(number, barrier))
    except BaseException:
        # The others would wait for this process for ever.
        barrier.abort()
        raise
