# SPDX-License-Identifier: Apache-2.0
# python: numpy h5py
# timeout: 90
# ignore: *.h5
set -euo pipefail
cat >work.py <<'PYTHON'
import sys, h5py, numpy as np
if sys.argv[1] == "write":
    r = np.random.default_rng(5)
    for step in range(4):
        with h5py.File(f"step{step}.h5", "w") as f:
            for name in "xyz":
                f.create_dataset(name, data=r.random(200_000, dtype="f4"))
            f.create_dataset("c", data=r.integers(0, 100, (300, 300)), chunks=(30, 300), compression="gzip")
            f.attrs["step"] = step
    with h5py.File("all.h5", "w") as f:
        d = f.create_dataset("grow", (0, 1000), maxshape=(None, 1000), chunks=(16, 1000), dtype="f8")
        for i in range(30):
            d.resize(i * 10 + 10, 0); d[i * 10:] = r.random((10, 1000))
            if i % 10 == 0: f.flush()
    with h5py.File("all.h5", "r+") as f:
        f["grow"][5] = 1.5
else:
    for step in range(4):
        with h5py.File(f"step{step}.h5", "r") as f:
            sums = [float(f[n][:].astype("f8").sum()) for n in "xyz"]
            print(step, f.attrs["step"], *sums, int(f["c"][10:200, ::3].sum()))
    with h5py.File("all.h5", "r") as f:
        print(f["grow"].shape, float(f["grow"][:].sum()), float(f["grow"][5].sum()))
    for driver in ("sec2", "stdio", "core"):
        with h5py.File("step1.h5", "r", driver=driver) as f:
            print(driver, float(f["x"][100:200].astype("f8").sum()))
PYTHON
"$PYTHON" work.py write
"$PYTHON" work.py read
