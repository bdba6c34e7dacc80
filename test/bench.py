"""bench.py MAINTAIN [MIB [TEXT]]: compaction and clean-up of the same tables by MAINTAIN and by the official engine, as ratios.

Tables of vectors have MIB MiB (default 256). With TEXT, only tables whose names have it.

Each side gets a copy of its own, on local disk, and reads it once beforehand. Time is that of the work alone (the official engine's
import is left out, ours includes the start of the process); memory is the peak of the whole process. Prints a table; judges nothing.
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
PY = HERE.parent / "internal" / "difftest" / "py"
OFFICIAL = """
import datetime, json, sys, time, lance
started = time.monotonic()
if len(sys.argv) > 1:
    ds = lance.dataset(sys.argv[1])
    ds.optimize.compact_files(materialize_deletions_threshold=0.0)
    lance.dataset(sys.argv[1]).cleanup_old_versions(older_than=datetime.timedelta(0), delete_unverified=False)
print(json.dumps(time.monotonic() - started))
"""


def tables(mib):
    """Name, and how to make it: by a recipe of make.py or benchtables.py, or repeated below."""
    yield "2,000 upserts on 40 keys", "upserts", ["--count", "2000", "--keys", "40"]
    for storage in ("2.0", "2.1", "2.2"):
        yield f"types, 2 x 100,000 rows, {storage}", "repeated", ["100000", "nulls", "2", storage]
    yield "types, 64 x 20,000 rows, 2.0", "repeated", ["20000", "plain", "64", "2.0"]
    yield "types, 64 x 20,000 rows, 2.2", "repeated", ["20000", "plain", "64", "2.2"]
    yield "nested, 2 x 10,000 rows, 2.2", "nested", ["--rows", "10000", "--storage", "2.2"]
    yield f"{mib} MiB of vectors in 64 fragments", "large", ["vectors", mib, "0"]
    yield f"{mib} MiB of vectors, a tenth deleted", "large", ["vectors", mib, "10"]
    yield "200 MB of text and numbers, a tenth deleted", "large", ["mixed", "200", "10"]
    yield "20,000 fragments of one row", "large", ["single", "20000", "0"]


def make(top, recipe, arguments):
    """Write a table, in a process of its own: a child's peak begins with what this one weighs."""
    if recipe == "repeated":
        uri = os.path.join(top, "repeated.lance")
        subprocess.run([sys.executable, __file__, "--repeated", uri, top, *arguments], check=True)
        return uri
    if recipe == "large":
        uri = os.path.join(top, "large.lance")
        subprocess.run([sys.executable, HERE / "benchtables.py", arguments[0], uri, *arguments[1:]], check=True)
        return uri
    done = subprocess.run([sys.executable, PY / "make.py", recipe, *arguments, "--out", top], check=True, capture_output=True)
    return json.loads(done.stdout)["uri"]


def repeated(uri, scratch, rows, nulls, times, storage):
    """The same ROWS rows of every type appended TIMES times, then a tenth of them deleted. Making rows is slow, so they are kept."""
    sys.path.insert(0, str(PY))
    import lance
    from make import age, random, type_table
    kept = os.path.join(scratch, f"{rows}-{nulls}.lance")
    if not os.path.exists(kept):
        lance.write_dataset(type_table(random.Random("bench"), int(rows), 0, nulls == "nulls"), kept)
    table = lance.dataset(kept).to_table()
    for i in range(int(times)):
        lance.write_dataset(table, uri, mode="append" if i else "create", data_storage_version=storage)
    lance.dataset(uri).delete("id % 10 = 3")
    age(uri, 30)


def run(argv):
    """Run a process: its output, CPU time in seconds, and peak memory in bytes."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"bench: {argv[0]} ended with status {status}")
    return out, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def weight(uri):
    """Files and bytes below a folder; each is read, so that both sides find them in memory, by pieces: see make."""
    files = size = 0
    for path in pathlib.Path(uri).rglob("*"):
        if path.is_file():
            files += 1
            with path.open("rb") as f:
                while piece := f.read(1 << 20):
                    size += len(piece)
    return files, size


def ours(keeper, top, uri):
    started = time.monotonic()
    out, cpu, peak = run([keeper, "--json", "--state", os.path.join(top, "state"), "--grace", "0s", "--allow-short-grace", uri])
    seconds, document = time.monotonic() - started, json.loads(out)
    assert document["outcome"] == "ok" and document["drained"], document
    return seconds, cpu, peak, document["results"][0]["requests"]


def official(uri):
    out, cpu, peak = run([sys.executable, "-c", OFFICIAL, uri])
    return json.loads(out), cpu, peak


def compare(keeper, top, made, base):
    """Both sides on copies of one table: one after the other, each twice; the faster times and the higher peak count.

    The CPU time of the official engine's import is base."""
    sides, requests = {}, {}
    for attempt in range(2):
        for side in ("official", "ours") if attempt else ("ours", "official"):
            uri = os.path.join(top, side + ".lance")
            shutil.copytree(made, uri)
            weight(uri)
            if side == "ours":
                seconds, cpu, peak, requests = ours(keeper, top, uri)
            else:
                seconds, cpu, peak = official(uri)
                cpu -= base
            files, size = weight(uri)
            shutil.rmtree(uri)
            if side in sides:
                seconds, cpu, peak = min(seconds, sides[side][2]), min(cpu, sides[side][3]), max(peak, sides[side][4])
            sides[side] = (files, size, seconds, cpu, peak)
    return sides, requests


def main():
    keeper, began = os.path.abspath(sys.argv[1]), time.monotonic()
    mib, wanted = (sys.argv[2:] + ["256", ""][len(sys.argv) - 2:])[:2]
    _, import_cpu, base = run([sys.executable, "-c", OFFICIAL])
    with tempfile.TemporaryDirectory(prefix="lancekeeper-bench-") as top:
        print(f"{'table':30} {'':9} {'files':>7} {'MB':>8} {'seconds':>9} {'MB/s':>7} {'CPU s':>7} {'peak MB':>8}", flush=True)
        for name, recipe, arguments in tables(mib):
            if wanted not in name:
                continue
            made = make(top, recipe, arguments)
            files, input_size = weight(made)
            print(f"{name:30} {'before':9} {files:7} {input_size / 1e6:8.2f}", flush=True)
            sides, requests = compare(keeper, top, made, import_cpu)
            for side in ("official", "ours"):
                files, size, seconds, cpu, peak = sides[side]
                print(f"{'':30} {side:9} {files:7} {size / 1e6:8.2f} {seconds:9.2f} {input_size / 1e6 / seconds:7.1f} {cpu:7.2f} {peak / 1e6:8.0f}")
            ratio = [mine / max(theirs, 1e-9) for mine, theirs in zip(sides["ours"], sides["official"])]
            print(f"{'':30} {'ratio':9} {ratio[0]:7.2f} {ratio[1]:8.2f} {ratio[2]:9.2f} {'':7} {ratio[3]:7.2f} {ratio[4]:8.2f}")
            print(f"{'':30} our requests: " + ", ".join(f"{requests[kind]} {kind}" for kind in ("list", "get", "put", "delete")), flush=True)
            shutil.rmtree(made)
    print(f"ratio: ours to the official engine's, below 1 is better. The official engine's process peaks at {base / 1e6:.0f} MB before it does anything.")
    print(f"{time.monotonic() - began:.0f} s in all")


if sys.argv[1] == "--repeated":
    repeated(*sys.argv[2:])
else:
    main()
