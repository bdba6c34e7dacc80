"""Makes demo/stats.lance.tar.gz: a small table that has been upserted for a week and never maintained.

    pip install pylance==14.0.2 && python demo/make.py

About 300 upserts on 20 keys, each a delete followed by an append, as services write that keep a few counters fresh. Every
upsert leaves two versions, a data file, a deletion file and two transactions behind. The file times are set to lie over nine
days and end eight days ago, so that nothing is inside the default waiting times when the archive is unpacked with times kept.
"""

import datetime
import gzip
import io
import os
import pathlib
import random
import tarfile
import tempfile

import lance
import pyarrow as pa

KEYS, UPSERTS = 20, 300
NEWEST, SPREAD = datetime.timedelta(days=8), datetime.timedelta(days=9)
ARCHIVE = pathlib.Path(__file__).with_name("stats.lance.tar.gz")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.utf8(), nullable=False),
        pa.field("value", pa.float64()),
        pa.field("updated", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)


def rows(ids: list[int], chance: random.Random, at: datetime.datetime) -> pa.Table:
    return pa.table(
        {
            "id": ids,
            "name": [f"sensor-{i:02d}" for i in ids],
            "value": [None if chance.random() < 0.1 else round(chance.uniform(-20, 40), 2) for _ in ids],
            "updated": [at] * len(ids),
        },
        schema=SCHEMA,
    )


def write(path: str, now: datetime.datetime) -> None:
    chance = random.Random(7)
    at = now - NEWEST - SPREAD
    table = lance.write_dataset(rows(list(range(KEYS)), chance, at), path)
    for n in range(UPSERTS):
        at += SPREAD / UPSERTS
        ids = sorted(chance.sample(range(KEYS), chance.randint(1, 3)))
        table.delete(f"id IN ({', '.join(map(str, ids))})")
        table = lance.write_dataset(rows(ids, chance, at), path, mode="append")
        if n == 20:
            table.tags.create("first-report", table.version)


def pack(root: pathlib.Path, now: datetime.datetime) -> bytes:
    """The files in the order in which they were written, with new times; the same bytes for the same files."""
    files = sorted((f for f in root.rglob("*") if f.is_file()), key=lambda f: (f.stat().st_mtime_ns, str(f)))
    times = [(now - NEWEST - SPREAD * (1 - (n + 1) / len(files))).timestamp() for n in range(len(files))]
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file, mtime in sorted(zip(files, times), key=lambda pair: (pair[0].suffix, pair[1])):
            info = tarfile.TarInfo(str(file.relative_to(root.parent)))
            info.size, info.mtime, info.mode = file.stat().st_size, int(mtime), 0o644
            tar.addfile(info, io.BytesIO(file.read_bytes()))
    return gzip.compress(raw.getvalue(), compresslevel=9, mtime=0)


def main() -> None:
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "stats.lance"
        write(str(root), now)
        ARCHIVE.write_bytes(pack(root, now))
        table = lance.dataset(str(root))
        files = sum(len(names) for _, _, names in os.walk(root))
        print(f"{ARCHIVE.name}: {ARCHIVE.stat().st_size:,} bytes; {table.count_rows()} rows, version {table.version}, "
              f"{len(table.get_fragments())} fragments, {files} files")


if __name__ == "__main__":
    main()
