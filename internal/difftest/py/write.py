"""write.py URI --seconds S --writer N: a live writer that upserts keys of its own, and checks at the end that it lost none.

Keys are those of the recipe upserts: a delete and an append per step, each retried after a conflict. Prints
{"steps": n, "conflicts": n}; exits 1 if the rows of its keys are not what it wrote last.
"""

import argparse
import json
import random
import sys
import time

import lance
import pyarrow as pa

from place import storage_options


def row(key, step):
    return pa.table({"id": pa.array([key], pa.int64()), "step": pa.array([step], pa.int32()),
                     "text": pa.array([f"writer, step {step}"], pa.utf8()), "loss": pa.array([0.5], pa.float32())})


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("uri")
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--writer", type=int, default=1)
    a = p.parse_args()
    options, rng = storage_options(a.uri), random.Random(a.writer)
    wrote, conflicts, step, end = {}, 0, 0, time.time() + a.seconds

    def persist(f):
        nonlocal conflicts
        while True:
            try:
                return f(lance.dataset(a.uri, storage_options=options))
            except OSError as e:
                if "conflict" not in str(e).lower():
                    raise
                conflicts += 1
    while time.time() < end:
        step += 1
        key = 1_000_000 * a.writer + rng.randrange(9)
        persist(lambda ds: ds.delete(f"id = {key}"))
        persist(lambda ds: lance.write_dataset(row(key, step), ds, mode="append"))
        wrote[key] = step
    mine = f"id >= {1_000_000 * a.writer} and id < {1_000_000 * (a.writer + 1)}"
    got = lance.dataset(a.uri, storage_options=options).to_table(columns=["id", "step"], filter=mine).to_pylist()
    if sorted((r["id"], r["step"]) for r in got) != sorted(wrote.items()):
        sys.exit(f"writer {a.writer}: has {got}, wrote {wrote}")
    print(json.dumps({"steps": step, "conflicts": conflicts}))


if __name__ == "__main__":
    main()
