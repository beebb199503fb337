# SPDX-License-Identifier: Apache-2.0
# needs: python3
# timeout: 60
# What changes a file's status but not its data moves its ctime once, and no later write-back moves it again:
# git, make and backup programs take a file for changed whose ctime is another than it was.
set -euo pipefail
cat >"$SCRATCH/changes.py" <<'END'
import mmap
import os
import time


def make(name):
    with open(name, "w") as file:
        file.write(name * 1000)


def ctime(name):
    return os.stat(name, follow_symlinks=False).st_ctime_ns


def rename(name):
    os.rename(name, name + ".new")
    return name + ".new"


def replace(name):
    make(name + ".old")
    os.rename(name, name + ".old")
    return name + ".old"


def link(name):
    os.link(name, name + ".second")


def unlink(name):
    os.unlink(name + ".second")


def attribute(name):
    try:
        os.setxattr(name, "user.test", b"x")
    except OSError:
        os.chmod(name, 0o601)


CHANGES = {
    "rename": rename,
    "replace": replace,
    "link": link,
    "unlink": unlink,
    "chmod": lambda name: os.chmod(name, 0o600),
    "fchmodat": lambda name: os.chmod(os.path.basename(name), 0o640, dir_fd=os.open(".", os.O_RDONLY)),
    "chown": lambda name: os.chown(name, os.getuid(), os.getgid()),
    "lchown": lambda name: os.lchown(name, os.getuid(), os.getgid()),
    "setxattr": attribute,
}


def read_through_mapping(name):
    with open(name, "rb") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
            return len(bytes(mapping))


make("mapped")
before = ctime("mapped")
time.sleep(0.02)
print("mapped", read_through_mapping("mapped"), "the ctime is kept:", ctime("mapped") == before)
seen = {"map": ("mapped", before)}
for change, function in CHANGES.items():
    make(change)
    if change == "unlink":
        link(change)
    before = ctime(change)
    time.sleep(0.02)
    name = function(change) or change
    seen[change] = (name, ctime(name))
    print(change, "moves the ctime:", ctime(name) > before, "size:", os.stat(name).st_size)
# Half a second is the delay of the write-back.
for wait in (0.3, 0.3, 0.3, 0.3, 0.3):
    time.sleep(wait)
    for change, (name, then) in seen.items():
        if ctime(name) != then:
            print(change, "the ctime moved again by", (ctime(name) - then) / 1e6, "ms")
            seen[change] = (name, ctime(name))
END
python3 "$SCRATCH/changes.py"
