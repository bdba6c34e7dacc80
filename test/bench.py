"""bench.py MAINTAIN: compaction and clean-up of the same tables by MAINTAIN and by the official engine, as ratios.

Each side gets a copy of its own, on local disk. Time is that of the work alone (the official engine's import is left out, ours
includes the start of the process); memory is the peak of the whole process. Prints a table; judges nothing.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MAKE = HERE.parent / "internal" / "difftest" / "py" / "make.py"
TABLES = [
    ("1,000 upserts on 40 keys", ["upserts", "--count", "1000", "--keys", "40"]),
    ("types, 2 x 100,000 rows, 2.0", ["types", "--rows", "100000", "--storage", "2.0"]),
    ("types, 2 x 100,000 rows, 2.1", ["types", "--rows", "100000", "--storage", "2.1"]),
    ("types, 2 x 100,000 rows, 2.2", ["types", "--rows", "100000", "--storage", "2.2"]),
    ("nested, 2 x 10,000 rows, 2.2", ["nested", "--rows", "10000", "--storage", "2.2"]),
]
OFFICIAL = """
import datetime, json, sys, time, lance
started = time.monotonic()
ds = lance.dataset(sys.argv[1])
ds.optimize.compact_files(materialize_deletions_threshold=0.0)
lance.dataset(sys.argv[1]).cleanup_old_versions(older_than=datetime.timedelta(0), delete_unverified=False)
print(json.dumps(time.monotonic() - started))
"""


def run(argv):
    """Run a process: its output, wall time in seconds, and peak memory in bytes."""
    started = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"bench: {argv[0]} ended with status {status}")
    return out, time.monotonic() - started, usage.ru_maxrss * 1024


def weight(uri):
    """Files and bytes below a folder."""
    sizes = [p.stat().st_size for p in pathlib.Path(uri).rglob("*") if p.is_file()]
    return len(sizes), sum(sizes)


def main():
    keeper = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="lancekeeper-bench-") as top:
        print(f"{'table':30} {'':9} {'files':>7} {'MB':>8} {'seconds':>9} {'peak MB':>8}")
        for name, recipe in TABLES:
            made = json.loads(subprocess.run([sys.executable, MAKE, *recipe, "--out", top], check=True, capture_output=True).stdout)["uri"]
            files, size = weight(made)
            print(f"{name:30} {'before':9} {files:7} {size / 1e6:8.2f}")
            sides = {}
            for side in ("official", "ours"):
                uri = os.path.join(top, side + ".lance")
                shutil.copytree(made, uri)
                if side == "ours":
                    out, seconds, peak = run([keeper, "--json", "--state", os.path.join(top, "state"), "--grace", "0s", "--allow-short-grace", uri])
                    assert json.loads(out)["outcome"] == "ok", out
                else:
                    out, _, peak = run([sys.executable, "-c", OFFICIAL, uri])
                    seconds = json.loads(out)
                files, size = weight(uri)
                sides[side] = (files, size, seconds, peak)
                print(f"{'':30} {side:9} {files:7} {size / 1e6:8.2f} {seconds:9.2f} {peak / 1e6:8.0f}")
                shutil.rmtree(uri)
            ratio = [ours / max(official, 1e-9) for ours, official in zip(sides["ours"], sides["official"])]
            print(f"{'':30} {'ratio':9} {ratio[0]:7.2f} {ratio[1]:8.2f} {ratio[2]:9.2f} {ratio[3]:8.2f}")
            shutil.rmtree(made)


main()
