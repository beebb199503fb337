# SPDX-License-Identifier: Apache-2.0
"""What the logs of tests/faults/crash_worker.cc say that a file must hold."""

CHUNK = 4096


def replay(lines):
    """The bytes of the file before and after the step that was under way at the end."""
    data, step = bytearray(), None
    for line in lines:
        if line == "e":
            data = apply(data, step)
            step = None
        elif line.startswith("b "):
            step = line.split()[1:]
    return bytes(data), bytes(apply(bytearray(data), step) if step else data)


def states_since_durable(lines):
    """The bytes of the file when it was made durable last, and after each step since; None: it never was."""
    states, data = None, bytearray()
    for line in lines:
        if line.startswith("b "):
            data = apply(bytearray(data), line.split()[1:])
            if states is not None:
                states.append(bytes(data))
        elif line == "d":
            states = [bytes(data)]
    return states


def apply(data, step):
    operation, at, length, value = step[0], *map(int, step[1:])
    if operation == "t":
        del data[at:]
        data.extend(bytes(at - len(data)))
        return data
    if len(data) < at + length:
        data.extend(bytes(at + length - len(data)))
    data[at:at + length] = bytes([value]) * length
    return data


def check_bytes(name, found, states):
    """A write that was under way may be there in part, and the file longer by a part of its bytes."""
    sizes = [len(state) for state in states]
    assert min(sizes) <= len(found) <= max(sizes), f"{name}: {len(found)} bytes, not {sorted(set(sizes))}"
    states = [state.ljust(len(found), b"\0") for state in states]
    for start in range(0, len(found), CHUNK):
        piece = found[start:start + CHUNK]
        if any(state[start:start + CHUNK] == piece for state in states):
            continue
        for at, byte in enumerate(piece, start):
            allowed = {state[at] for state in states}
            assert byte in allowed, f"{name}: byte {at} is {byte}, not one of {sorted(allowed)}"
