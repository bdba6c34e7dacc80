"""benchtables.py RECIPE URI SIZE PERCENT: write a large table for bench.py, and delete PERCENT of its rows.

vectors: SIZE MiB of 768-dimensional float32 vectors in 64 fragments. mixed: SIZE MB of strings, ints, floats and timestamps in
eight. single: SIZE fragments of one row each.
"""

import pathlib
import sys

import lance
import numpy as np
import pyarrow as pa

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "internal" / "difftest" / "py"))
from place import age  # noqa: E402

RNG = np.random.default_rng(42)
WORDS = np.array(["".join(RNG.choice(list("abcdefghijklmnopqrstuvwxyz"), RNG.integers(2, 10))) for _ in range(5000)])


def vectors(start, n):
    flat = pa.array(RNG.standard_normal(n * 768, dtype=np.float32))
    return pa.table({"id": pa.array(range(start, start + n), pa.int64()), "vector": pa.FixedSizeListArray.from_arrays(flat, 768)})


def mixed(start, n):
    """About 124 bytes a row in memory."""
    text = [" ".join(row) for row in RNG.choice(WORDS, (n, 6))]
    return pa.table({
        "id": pa.array(range(start, start + n), pa.int64()), "text": text, "status": RNG.choice(["open", "closed", "failed"], n),
        "name": pa.array([None if i % 5 == 0 else f"user {i * 7919 % 100003}" for i in range(n)]),
        "count": pa.array(RNG.integers(0, 500, n), pa.int32()), "score": RNG.random(n), "weight": RNG.standard_normal(n, dtype=np.float32),
        "at": pa.array(RNG.integers(1_700_000_000_000_000, 1_701_000_000_000_000, n), pa.timestamp("us"))})


def write(recipe, uri, size, percent):
    if recipe == "single":
        lance.write_dataset(mixed(0, size), uri, max_rows_per_file=1)
    else:
        rows, make, fragments = (size * (1 << 20) // (768 * 4), vectors, 64) if recipe == "vectors" else (size * 1_000_000 // 124, mixed, 8)
        n = rows // fragments
        for i in range(fragments):
            lance.write_dataset(make(i * n, n), uri, mode="append" if i else "create")
    if percent:
        lance.dataset(uri).delete(f"id % {100 // percent} = 3")
    age(uri, 30)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
