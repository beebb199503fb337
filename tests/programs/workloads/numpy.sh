# SPDX-License-Identifier: Apache-2.0
# python: numpy
# timeout: 90
# ignore: *.npz
set -euo pipefail
cat >work.py <<'PYTHON'
import hashlib, os
import numpy as np

def digest(name): return hashlib.sha256(open(name, "rb").read()).hexdigest()[:16]

a = np.arange(500_000, dtype=np.float64).reshape(500, 1000)
a.tofile("a.raw"); print(digest("a.raw"), os.path.getsize("a.raw"))
with open("two.raw", "wb") as f:
    f.write(b"header__"); a[:10].tofile(f); print(f.tell()); f.write(b"trailer"); a[10:12].tofile(f)
with open("two.raw", "rb") as f:
    print(f.read(8)); b = np.fromfile(f, count=10_000); print(f.tell(), b.sum(), f.read(7))
    print(np.fromfile(f).sum())
print(np.fromfile("a.raw", offset=8000, count=1000).sum())
a.astype("f4").T.tofile("t.raw"); print(digest("t.raw"))
np.savetxt("a.txt", a[:20]); print(np.loadtxt("a.txt").sum())
a[:3].tofile("csv", sep=","); print(np.fromfile("csv", sep=",").sum())
np.save("a.npy", a); print((np.load("a.npy") == a).all(), np.load("a.npy", mmap_mode="r")[7, 7])
np.savez("z.npz", a=a, b=a * 2)
np.savez_compressed("zc.npz", a=a)
z = np.load("z.npz"); print(z["b"].sum(), np.load("zc.npz")["a"].sum())
m = np.memmap("m.raw", dtype="i4", mode="w+", shape=(300, 1000))
m[:] = np.arange(300_000).reshape(300, 1000)
m[17] = -1
print(int(np.fromfile("m.raw", dtype="i4").sum())); m.flush(); del m
m = np.memmap("m.raw", dtype="i4", mode="r+", shape=(300, 1000)); m[18] += 5
with open("m.raw", "rb") as f: f.seek(18 * 4000); print(int(np.fromfile(f, dtype="i4", count=1000).sum()))
with open("m.raw", "r+b") as f: f.write(np.full(10, 7, "i4").tobytes())
print(m[0, :12].tolist()); del m
c = np.memmap("m.raw", dtype="i4", mode="c", shape=(300, 1000)); c[0, 0] = 99
print(int(np.fromfile("m.raw", dtype="i4")[0]))
r = np.memmap("m.raw", dtype="i4", mode="r"); print(int(r.astype("i8").sum()), digest("m.raw"))
o = np.lib.format.open_memmap("o.npy", mode="w+", dtype="f8", shape=(100, 100))
o[:] = 3
o.flush()
print(np.load("o.npy").sum())
PYTHON
"$PYTHON" work.py
sha256sum a.raw two.raw t.raw m.raw a.npy o.npy
