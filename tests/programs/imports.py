#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the I/O symbols that real programs import from libc with what the preload library covers.

A symbol that is neither exported by libcairn_preload.so nor listed with a reason in uncovered_symbols.txt
fails: either a hook is missing, or somebody has to say why none is needed.

    imports.py              the check
    imports.py --all        every I/O symbol, who imports it and how it is covered
"""

import argparse
import fnmatch
import glob
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

PROGRAMS = """cp cat mv ls dd rm touch sort stat split tee truncate cmp du ln install shuf tac head tail wc od
sha256sum mkdir mktemp tar gzip zstd xz bzip2 find xargs grep sed gawk mawk bash dash rsync git sqlite3 fio
stress-ng perl make gcc as ld ar strip nm objcopy diff patch cpio zip unzip flock python3 fsx pjdfstest curl
ncks cdo ncdump h5dump""".split()
# Patterns below the usual places of libraries; those that a machine does not have are passed over.
LIBRARIES = """libstdc++.so.6 libgfortran.so.5 libpython3*.so.1.0 libhdf5*.so.* libnetcdf*.so.* libmpi.so.*
libsqlite3.so.0 libaio.so.1 liburing.so.2 libz.so.1 libzstd.so.1 liblzma.so.5 libbz2.so.1.0 libperl.so.*
libcfitsio.so.* libarchive.so.13 libtbb.so.* libjemalloc.so.* libtcalloc.so.* librocksdb.so.*""".split()
FOLDERS = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/lib/gcc/x86_64-linux-gnu/*",
           "/usr/lib/python3*/lib-dynload", "/usr/libexec/gcc/x86_64-linux-gnu/*", "/usr/lib/git-core",
           str(under_cairn.SOURCE / "build/venv/lib/python3*/site-packages/*"),
           str(under_cairn.SOURCE / "build/venv/lib/python3*/site-packages/*.libs")]
EXTRA = ["cc1", "collect2", "*.so"]  # compilers proper, Python's extension modules, bundled libraries

# What looks like file input or output, directories, descriptors, processes or memory mappings.
IO_WORDS = re.compile(
    r"open|clos|read|writ|seek|stat|trunc|link|renam|dir|sync|mmap|munmap|mremap|madvise|mincore|mlock|msync|mknod|"
    r"mkfifo|mkst|mkos|mkdt|mktemp|chmod|chown|utim|alloc(?=ate)|fadvise|dup|fcntl|ioctl|lock|sendfile|splice|^tee|"
    r"aio|lio|xattr|exec|spawn|fork|clone|temp|tmp|access|getc|putc|gets|puts|getw|putw|ungetc|printf|scanf|file|"
    r"path|cwd|syscall|flow|getdelim|getline|buf|rewind|fpending|fpurge|freading|ftw|glob|fts|sendmsg|recvmsg|"
    r"remove|umask|vmsplice|system|daemon|tty|mount|quota|inotify|fanotify|memfd|eventfd|name_to_handle|process_vm|"
    r"io_")
# Words of the pattern that also occur in names that have nothing to do with files.
NOT_IO = re.compile(
    r"^_?pthread_|^pthread|thread|sched|clock|mutex|locale|^str|^mem(?!fd)|^wcs|^is[aw]|^_ZN|^_ZS|^_ZT|^__cxa|^sem_|^"
    r"sig|^__sig|^gai_|^res_|^inet|^gethost|^getaddr|^getserv|^getproto|^getnet|^if_|^malloc|^calloc|^realloc|^re_|"
    r"reg(exec|comp|free)|^dl|^__libc_|^iconv|^nl_|^bindtext|^catopen|^catclose|^sysconf|^confstr|^getrlimit|"
    r"^_ITM|^__gmon|^obstack|^_obstack|^set(host|net|pro|serv|pw|gr)|^end(host|net|pro|serv|pw|gr)|^xdr|^svc|"
    r"^clnt|^rpc|^key_|^getlogin|^cuserid|^unlockpt|^lround|^llround|^alignedalloc|wordexp|^error|^warn|^err|^perror")


def imports_of(path):
    result = subprocess.run(["nm", "-D", "--undefined-only", str(path)], capture_output=True, text=True)
    names = set()
    for line in result.stdout.splitlines():
        name = line.split()[-1]
        if "@GLIBC" in name or "@" not in name:
            names.add(name.split("@")[0])
    return names


def objects():
    """All files to look at, each once."""
    found = {}
    for program in PROGRAMS:
        path = shutil.which(program) or under_cairn.TOOLS / "bin" / program
        if Path(path).exists():
            found[Path(path).resolve()] = program
    for folder in FOLDERS:
        for pattern in LIBRARIES + (EXTRA if folder not in FOLDERS[:2] else []):
            for path in glob.glob(f"{folder}/{pattern}"):
                found.setdefault(Path(path).resolve(), Path(path).name)
    return found


def exported_by_libc():
    for path in ("/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6"):
        if Path(path).exists():
            return defined_in(path)
    return set()


def defined_in(library):
    result = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True)
    return {line.split()[-1].split("@")[0] for line in result.stdout.splitlines()}


def uncovered_list():
    """Patterns of symbols that need no hook, with the reason of each."""
    entries = {}
    for line in (HERE / "uncovered_symbols.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = line.partition(" ")
            entries[pattern] = reason.strip()
    return entries


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    libc = exported_by_libc()
    importers = {}
    examined = objects()
    for path, name in examined.items():
        for symbol in imports_of(path) & libc:
            if IO_WORDS.search(symbol) and not NOT_IO.search(symbol):
                importers.setdefault(symbol, []).append(name)
    library = under_cairn.BUILD / "lib/libcairn_preload.so"
    covered = defined_in(library) if library.exists() else set()
    reasons = uncovered_list()
    unreasoned = [pattern for pattern, reason in reasons.items() if not reason]
    missing = []
    for symbol in sorted(importers):
        reason = next((text for pattern, text in reasons.items() if fnmatch.fnmatchcase(symbol, pattern)), None)
        how = "hook" if symbol in covered else reason
        if options.all:
            print(f"{symbol:32} {how or 'NOT COVERED':50} {' '.join(sorted(set(importers[symbol]))[:6])}")
        if how is None:
            missing.append(symbol)
    if not library.exists():
        print(f"skipped: {library} is not built")
        return under_cairn.SKIPPED
    for symbol in missing:
        print(f"not covered: {symbol}, imported by {' '.join(sorted(set(importers[symbol]))[:8])}")
    for pattern in unreasoned:
        print(f"uncovered_symbols.txt: {pattern} has no reason")
    print(f"{len(examined)} programs and libraries import {len(importers)} I/O symbols: "
          f"{sum(s in covered for s in importers)} have hooks, {len(missing)} are not covered")
    return 1 if missing or unreasoned else 0


if __name__ == "__main__":
    sys.exit(main())
