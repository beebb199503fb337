#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the I/O symbols that libc offers to programs with what the preload library covers.

A symbol that is neither exported by libcairn_preload.so nor listed with a reason in uncovered_symbols.txt
fails: either a hook is missing, or somebody has to say why none is needed. What counts is libc, which is the same on
every machine of a distribution, and not which programs are installed: these are only named, as examples of importers.

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


def importers_of(symbols):
    """Which of the programs and libraries that are installed here import each symbol."""
    importers = {}
    for path, name in objects().items():
        for symbol in imports_of(path) & set(symbols):
            importers.setdefault(symbol, set()).add(name)
    return importers


def libc_path():
    places = ("/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6")
    return next(path for path in places if Path(path).exists())


def defined_in(library):
    """What a library offers to others. glibc's own libraries share symbols that no program can link with."""
    result = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    names = [line.split()[-1] for line in result.stdout.splitlines()]
    return {name.split("@")[0] for name in names if not name.endswith("@GLIBC_PRIVATE")}


def io_symbols(names):
    return sorted(name for name in names if IO_WORDS.search(name) and not NOT_IO.search(name))


def uncovered(symbols, hooks, reasons):
    """The symbols that have neither a hook nor a reason."""
    return [name for name in symbols
            if name not in hooks and not any(fnmatch.fnmatchcase(name, pattern) for pattern in reasons)]


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
    library = under_cairn.BUILD / "lib/libcairn_preload.so"
    if not library.exists():
        print(f"skipped: {library} is not built")
        return under_cairn.SKIPPED
    symbols = io_symbols(defined_in(libc_path()))
    hooks = defined_in(library)
    reasons = uncovered_list()
    missing = uncovered(symbols, hooks, reasons)
    importers = importers_of(symbols) if missing or options.all else {}
    if options.all:
        for name in symbols:
            reason = next((text for pattern, text in reasons.items() if fnmatch.fnmatchcase(name, pattern)), None)
            how = "hook" if name in hooks else reason or "NOT COVERED"
            print(f"{name:32} {how:50} {' '.join(sorted(importers.get(name, ()))[:6])}")
    for name in missing:
        known = " ".join(sorted(importers.get(name, ()))[:8])
        print(f"not covered: {name}" + (f", imported by {known}" if known else ""))
    unreasoned = [pattern for pattern, reason in reasons.items() if not reason]
    for pattern in unreasoned:
        print(f"uncovered_symbols.txt: {pattern} has no reason")
    print(f"libc offers {len(symbols)} I/O symbols: {sum(name in hooks for name in symbols)} have hooks, "
          f"{len(missing)} are not covered")
    return 1 if missing or unreasoned else 0


if __name__ == "__main__":
    sys.exit(main())
