"""make.py RECIPE --out DIR: write a dataset with the official engine and print {"uri": ...}.

Rows depend on the arguments alone. DIR is local or s3:// (then on the file-backed server of test/services). All files
become --age-days old, except where a recipe says otherwise.
"""

import argparse
import decimal
import json
import os
import random
import uuid
from datetime import timedelta

import lance
import numpy as np
import pyarrow as pa

from place import age, files, folder, storage_options

RECIPES = {}


def recipe(f):
    RECIPES[f.__name__] = f
    return f


class Job:
    """Arguments, the dataset's URI, and writing to it."""

    def __init__(self, options):
        self.o, self.rng = options, random.Random(options.recipe)
        out, query, parameters = options.out.partition("?")  # of s3+ddb://
        self.uri = f"{out.rstrip('/')}/{options.name or options.recipe}.lance{query}{parameters}"
        self.notes = {}

    def open(self):
        return lance.dataset(self.uri, storage_options=storage_options(self.uri))

    def write(self, table, mode="append", uri=None, **kw):
        uri = uri or self.uri
        if not os.path.isdir(os.path.join(folder(uri), "_versions")):
            mode = "create"
            kw.setdefault("data_storage_version", self.o.storage)
        return lance.write_dataset(table, uri, mode=mode, storage_options=storage_options(uri), **kw)

    def rows(self, n, start=0):
        """A plain table: id, name, value (with nulls)."""
        ids = range(start, start + n)
        return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"name {i}" for i in ids],
                         "value": pa.array([None if i % 7 == 3 else i / 8 for i in ids], pa.float64())})

    def appends(self, count, n, start=0, **kw):
        for i in range(count):
            self.write(self.rows(n, start + i * n), **kw)


@recipe
def upserts(job):
    """--count delete-then-append upserts over --keys keys: two versions and a one-row fragment each."""
    for i in range(job.o.count):
        key = i if i < job.o.keys else job.rng.randrange(job.o.keys)
        row = pa.table({"id": pa.array([key], pa.int64()), "step": pa.array([i], pa.int32()),
                        "text": pa.array([None if i % 5 == 4 else f"step {i} of key {key} " + "x" * (i % 40)], pa.utf8()),
                        "loss": pa.array([1 / (i + 1)], pa.float32())})
        if i:
            job.open().delete(f"id = {key}")
        job.write(row)


@recipe
def deletes(job):
    """Appends, then deletions of both file kinds: a few rows of a fragment (arrow), thousands of one (bitmap)."""
    for i, n in enumerate((30, 7000, 1, 40, 50)):
        job.write(job.rows(n, i * 10000))
    job.open().delete("id < 5 or id = 30007")
    job.open().delete("id >= 10000 and id < 20000 and id % 7 != 3")


@recipe
def updates(job):
    """Updates by expression and merge-inserts that update and insert, between appends."""
    job.appends(4, 25)
    job.open().update({"name": "'updated'"}, where="id % 9 = 2")
    job.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(job.rows(20, 90))
    job.appends(2, 5, 500)
    job.open().update({"value": "value + 1"}, where="id % 4 = 1")


@recipe
def emptied(job):
    """A fragment whose rows all go, one by one, between others."""
    job.appends(4, 6)
    for i in range(6, 12):
        job.open().delete(f"id = {i}")
    job.appends(2, 3, 100)


@recipe
def cleared(job):
    """Every row deleted."""
    job.appends(3, 4)
    job.open().delete("true")


def type_columns(rng, n):
    """Every type that a rewrite supports, as {name: (type, values)}."""
    def ints(bits, signed=True):
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return [(low, high, 0)[i] if i < 3 else rng.randint(low, high) for i in range(n)]
    text = ["", "ä€🙂", "x" * 300][:n] + [rng.choice(("red", "green", "blue")) * rng.randint(0, 9) for _ in range(n - 3)]
    floats = [float("nan"), -0.0, float("inf")][:n] + [rng.gauss(0, 1e3) for _ in range(n - 3)]
    out = {"bool": (pa.bool_(), [rng.random() < 0.3 for _ in range(n)]),
           "float16": (pa.float16(), [np.float16(min(max(f, -6e4), 6e4)) for f in floats]), "float32": (pa.float32(), floats), "float64": (pa.float64(), floats),
           "decimal128": (pa.decimal128(38, 4), [decimal.Decimal(rng.randint(-(10**30), 10**30)).scaleb(-4) for _ in range(n)]),
           "decimal256": (pa.decimal256(60, 2), [decimal.Decimal(rng.randint(-(10**18), 10**18)).scaleb(-2) for _ in range(n)]),
           "date32": (pa.date32(), ints(16)), "date64": (pa.date64(), [v * 86400_000 for v in ints(16)]),
           "time32": (pa.time32("ms"), [rng.randrange(86400_000) for _ in range(n)]), "time64": (pa.time64("ns"), [rng.randrange(86400 * 10**9) for _ in range(n)]),
           "utf8": (pa.utf8(), text), "large_utf8": (pa.large_utf8(), text[::-1]), "constant": (pa.utf8(), ["same"] * n),
           "binary": (pa.binary(), [rng.randbytes(rng.randint(0, 24)) for _ in range(n)]), "large_binary": (pa.large_binary(), [t.encode() for t in text])}
    for bits in (8, 16, 32, 64):
        out[f"int{bits}"] = (getattr(pa, f"int{bits}")(), ints(bits))
        out[f"uint{bits}"] = (getattr(pa, f"uint{bits}")(), ints(bits, signed=False))
    out["sequence"], out["small"] = (pa.int64(), list(range(n))), (pa.int32(), [rng.randint(0, 12) for _ in range(n)])
    for unit in ("s", "ms", "us", "ns"):
        out[f"timestamp_{unit}"] = (pa.timestamp(unit), [rng.randint(0, 2**40) for _ in range(n)])
        out[f"duration_{unit}"] = (pa.duration(unit), ints(40))
    out["timestamp_zone"] = (pa.timestamp("us", "UTC"), [rng.randint(0, 2**50) for _ in range(n)])
    for width, item in ((4, pa.float32()), (3, pa.float64()), (8, pa.float16())):
        out[f"vector_{item}"] = (pa.list_(item, width), [[np.float16(rng.random()) if item == pa.float16() else rng.random() for _ in range(width)] for _ in range(n)])
    return out


def type_table(rng, n, start, nulls):
    """All types: columns without nulls, and with nulls where nulls is set, among them one that is all null."""
    arrays, fields = [pa.array(range(start, start + n), pa.int64())], [pa.field("id", pa.int64(), nullable=False)]
    for name, (kind, values) in type_columns(rng, n).items():
        arrays.append(pa.array(values, kind))
        fields.append(pa.field(name, kind, nullable=False))
        if nulls:
            arrays.append(pa.array([None if rng.random() < 0.2 else v for v in values], kind))
            fields.append(pa.field(f"{name}_null", kind))
            arrays.append(pa.nulls(n, kind))
            fields.append(pa.field(f"{name}_void", kind))
    return pa.table(arrays, schema=pa.schema(fields))


@recipe
def types(job):
    """Every supported type, null and not, in two fragments of --rows rows and one small one, some rows deleted."""
    n = job.o.rows
    for i in range(3):
        job.write(type_table(job.rng, n if i < 2 else min(n, 50), i * n, not job.o.no_nulls))
    if n > 1:
        job.open().delete(f"id % 10 = 3 or id = {2 * n}")


@recipe
def large(job):
    """Pages of some MiB in each of four fragments: 768-dimensional vectors, long text, lists, structs. Half of the third one is deleted."""
    n, rng = 1500, np.random.default_rng(7)
    words = ["".join(job.rng.choices("abcdefghij ", k=9)) for _ in range(5000)]
    for i in range(4):
        vectors = rng.standard_normal(n * 768, dtype=np.float32)
        flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors), 768)
        nulls = pa.FixedSizeListArray.from_arrays(pa.array(vectors[::-1]), 768, mask=pa.array(rng.random(n) < 0.1))
        text = [" ".join(job.rng.choices(words, k=job.rng.randint(0, 400))) for _ in range(n)]
        lists = [None if j % 11 == 5 else list(map(int, rng.integers(-2**60, 2**60, j % 300))) for j in range(n)]
        deep = [{"x": None if j % 9 == 2 else [None, t[:5], t[5:]], "y": j} for j, t in enumerate(text)]
        job.write(pa.table({"id": pa.array(range(i * n, i * n + n), pa.int64()), "vector": flat, "vector_null": nulls, "text": text,
                            "list": pa.array(lists, pa.list_(pa.int64())), "deep": deep}))
    job.open().delete(f"id >= {2 * n} and id < {3 * n} and id % 2 = 0")


@recipe
def reshaped(job):
    """Lists and structs of which fields were dropped, added and rewritten: several data files, some with columns that no longer count."""
    inner = pa.struct([pa.field("x", pa.int32()), pa.field("l", pa.list_(pa.int32())), pa.field("q", pa.utf8())])
    for i in range(4):
        ids = range(3 * i, 3 * i + 3)
        job.write(pa.table({"id": pa.array(ids, pa.int64()),
                            "s": pa.array([{"x": k, "l": [k] * (k % 3) if k % 4 else None, "q": str(k)} for k in ids], inner),
                            "ls": pa.array([[{"x": k, "l": [1, None], "q": None}] * (k % 3) for k in ids], pa.list_(inner))}))
    job.open().drop_columns(["s.l"])
    job.open().add_columns({"n": "named_struct('a', id, 'b', s)"})
    job.open().add_columns(pa.field("late", pa.list_(pa.struct([pa.field("z", pa.int8())]))))
    ds = job.open()
    new = pa.table({"_rowid": pa.array([0, 1], pa.uint64()), "ls": pa.array([[], None], ds.schema.field("ls").type)})
    fragment, fields = ds.get_fragments()[0].update_columns(new, left_on="_rowid", right_on="_rowid")
    lance.LanceDataset.commit(job.uri, lance.LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields),
                              read_version=ds.version, storage_options=storage_options(job.uri))
    job.open().delete("id = 4")


@recipe
def latestruct(job):
    """A struct added to a table in file version 2.0, which can't say that it is null in older rows: a rewrite leaves these alone."""
    kind = pa.struct([pa.field("a", pa.int32())])
    for i in range(4):
        job.write(pa.table({"id": pa.array([i], pa.int64())}), **({} if i else {"data_storage_version": "2.0"}))
    job.open().add_columns(pa.field("late", kind))
    job.write(pa.table({"id": pa.array([9], pa.int64()), "late": pa.array([{"a": 1}], kind)}))


def nested_table(rng, n, start, storage):
    """Lists, structs and (from 2.2) maps, one in the other, with nulls and empty lists at every level; dictionaries."""
    def some(value):
        return None if rng.random() < 0.2 else value()
    def struct(value):
        return value() if storage == "2.0" else some(value)  # 2.0 has no null structs
    def items(value, most=4):
        return [value() for _ in range(rng.choice((0, 1, rng.randint(0, most))))]
    def number():
        return some(lambda: rng.randint(-9, 10**6))
    def text():
        return some(lambda: rng.choice(("", "red", "a longer text " * rng.randint(1, 30))))
    point = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.float64()), pa.field("label", pa.utf8())])
    def a_point():
        return struct(lambda: {"x": number(), "y": some(rng.random), "label": text()})
    columns = {"numbers": (pa.list_(pa.int32()), lambda: some(lambda: items(number))),
               "many": (pa.list_(pa.int64()), lambda: some(lambda: items(number, 400))),
               "texts": (pa.large_list(pa.utf8()), lambda: some(lambda: items(text))),
               "flags": (pa.list_(pa.bool_()), lambda: some(lambda: items(lambda: some(lambda: rng.random() < 0.5)))),
               "lists": (pa.list_(pa.list_(pa.int16())), lambda: some(lambda: items(lambda: some(lambda: items(lambda: some(lambda: rng.randint(0, 99))))))),
               "point": (point, a_point), "points": (pa.list_(point), lambda: some(lambda: items(a_point))),
               "deep": (pa.struct([pa.field("inner", pa.struct([pa.field("texts", pa.list_(pa.utf8())), pa.field("n", pa.int8())]))]),
                        lambda: struct(lambda: {"inner": struct(lambda: {"texts": some(lambda: items(text)), "n": some(lambda: rng.randint(0, 99))})})),
               "vectors": (pa.list_(pa.list_(pa.float32(), 3)), lambda: some(lambda: items(lambda: some(lambda: [rng.random() for _ in range(3)]))))}
    columns |= {"nothing": (pa.null(), lambda: None), "bits": (pa.list_(pa.bool_(), 5), lambda: some(lambda: [rng.random() < 0.5 for _ in range(5)])),
                "kind": (pa.dictionary(pa.int8(), pa.utf8()), lambda: some(lambda: f"kind {rng.randint(0, 60)}")),
                "codes": (pa.dictionary(pa.uint16(), pa.int64()), lambda: some(lambda: rng.randint(0, 10**12)))}
    if storage >= "2.2":
        columns["map"] = (pa.map_(pa.utf8(), pa.int64()), lambda: some(lambda: [(f"key {i}", number()) for i in range(rng.randint(0, 3))]))
    out = {"id": pa.array(range(start, start + n), pa.int64())}
    for name, (kind, value) in columns.items():
        out[name] = pa.array([value() for _ in range(n)], kind)
    return pa.table(out)


@recipe
def nested(job):
    """Lists, structs and maps, in fragments of --rows rows, of one row, and without deleted rows."""
    at = 0
    for n in (job.o.rows, 1, 1, 40, job.o.rows):
        job.write(nested_table(job.rng, n, at, job.o.storage))
        at += n
    job.open().delete("id % 5 = 1")
    last = nested_table(job.rng, 3, at, job.o.storage)
    kind = pa.list_(pa.int32())
    job.open().add_columns(pa.field("late list", kind))
    last = last.append_column("late list", pa.array([[1, 2], None, []], kind))
    if job.o.storage != "2.0":
        kind = pa.struct([pa.field("a", pa.utf8()), pa.field("b", pa.list_(pa.int8()))])
        job.open().add_columns(pa.field("late struct", kind))
        last = last.append_column("late struct", pa.array([{"a": "x", "b": [3]}, None, {"a": None, "b": None}], kind))
    job.write(last)


@recipe
def tags(job):
    """Tags on old versions, a branch with a commit of its own and a tag on it, then more history."""
    job.appends(5, 20)
    job.open().tags.create("second", 2)
    job.open().delete("id < 10")
    branch = job.open().create_branch("side", 4)
    lance.write_dataset(job.rows(7, 5000), branch, mode="append")
    branch = job.open().checkout_version(("side", None))
    job.open().tags.create("on-side", ("side", branch.version))
    job.appends(8, 3, 1000)
    job.open().delete("id % 9 = 0")
    job.open().tags.create("newest", job.open().version)


@recipe
def branches(job):
    """A branch, a branch of that branch, and one whose name has a slash, each with commits of its own and files of its parents;
    then the parents move on."""
    job.appends(5, 20)
    job.open().delete("id < 3")
    if job.o.branch_as:
        at = job.o.branch_as + job.uri.partition("://")[2].partition("?")[0]
        side = lance.dataset(at, storage_options=storage_options(at)).create_branch("side", 4)
    else:
        side = job.open().create_branch("side", 4)
    side = lance.write_dataset(job.rows(7, 5000), side, mode="append", storage_options=storage_options(job.uri))
    deep = side.create_branch("deep", ("side", side.version))
    lance.write_dataset(job.rows(3, 6000), deep, mode="append", storage_options=storage_options(job.uri))
    job.open().create_branch("team/work", 6)
    side = job.open().checkout_version(("side", None))
    side.delete("id > 50")
    job.appends(4, 10, 1000)
    job.open().delete("id % 7 = 0")


@recipe
def clone(job):
    """A dataset and, beside it, a shallow clone of an old version of it, which then went its own way."""
    job.appends(5, 20)
    job.open().delete("id < 3")
    at = job.open().version
    copy = f"{job.uri.removesuffix('.lance')}-copy.lance"
    ds = job.open().shallow_clone(copy, at, storage_options=storage_options(job.uri))
    lance.write_dataset(job.rows(5, 7000), ds, mode="append", storage_options=storage_options(job.uri))
    lance.dataset(copy, storage_options=storage_options(job.uri)).delete("id = 9")
    job.appends(4, 10, 1000)
    job.open().delete("id % 7 = 0")
    job.notes = {"copy": copy, "version": at}
    age(copy, job.o.age_days)


@recipe
def v1names(job):
    """Manifests named <version>.manifest."""
    job.appends(12, 10, enable_v2_manifest_paths=False)
    job.open().delete("id % 4 = 1")


@recipe
def detached(job):
    """A detached version beside the history, whose data file nothing else names."""
    job.appends(3, 10)
    ds = job.open()
    fragments = lance.fragment.write_fragments(job.rows(20, 9000), ds, mode="append")
    made = lance.LanceDataset.commit(ds, lance.LanceOperation.Append(fragments), read_version=ds.version, detached=True)
    job.notes["detached"] = made.version
    job.appends(3, 10, 500)


@recipe
def opentxn(job):
    """Another writer's uncommitted files, young and nine days old, and files that are not the format's."""
    job.appends(4, 10)
    job.open().delete("id < 5")
    age(job.uri, job.o.age_days)
    for days in (9, 0):
        before = set(files(job.uri))
        lance.fragment.write_fragments(job.rows(20, 9000), job.uri, mode="append", storage_options=storage_options(job.uri))
        for path in (f"_transactions/5-{uuid.UUID(bytes=job.rng.randbytes(16), version=4)}.txn",
                     f"_deletions/0-5-{job.rng.getrandbits(63)}.arrow",
                     f"_indices/{uuid.UUID(bytes=job.rng.randbytes(16), version=4)}/index.idx"):
            put(job.uri, path)
        made = sorted(set(files(job.uri)) - before)
        age(job.uri, days, made)
        job.notes["old" if days else "young"] = made
    job.notes["foreign"] = ["README.txt", "data/notes.txt", "videos/a.mp4", "_versions/keep.me"]
    for path in job.notes["foreign"]:
        put(job.uri, path)
    age(job.uri, 30, job.notes["foreign"])
    job.o.age_days = 0


def put(uri, path):
    at = os.path.join(folder(uri), path)
    os.makedirs(os.path.dirname(at), exist_ok=True)
    with open(at, "wb") as f:
        f.write(b"not committed")


@recipe
def indexed(job):
    """A BTREE index over the first fragments, more fragments behind it, deletions in both."""
    job.appends(5, 30)
    job.open().create_scalar_index("id", "BTREE")
    job.appends(5, 8, 1000)
    job.open().delete("id % 6 = 5")


@recipe
def contended(job):
    """Two groups of four small fragments between large ones of 200 rows, and an index that covers the first large one alone."""
    job.write(job.rows(200))
    job.open().create_scalar_index("id", "BTREE")
    job.appends(4, 10, 1000)
    job.write(job.rows(200, 2000))
    job.appends(4, 10, 3000)


@recipe
def reindexed(job):
    """A BTREE index built three times: two index folders that only old versions name."""
    job.appends(4, 30)
    for _ in range(3):
        job.open().create_scalar_index("id", "BTREE", replace=True)


@recipe
def stableids(job):
    """Stable row ids."""
    job.appends(6, 10, enable_stable_row_ids=True)
    job.open().delete("id % 7 = 3")
    job.open().update({"name": "'updated'"}, where="id % 5 = 2")
    job.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(job.rows(20, 50))
    job.write(job.rows(3000, 1000))
    job.open().delete("id >= 1000 and id % 3 = 1")


@recipe
def evolved(job):
    """Columns added as all-null, added with values, renamed and dropped; rows before and after each."""
    job.appends(3, 10)
    job.open().add_columns({"double": "value * 2"})
    job.open().add_columns(pa.field("later", pa.int32()))
    grow(job, 1000)
    job.open().alter_columns({"path": "name", "name": "étiquette"})
    grow(job, 2000)
    job.open().drop_columns(["double"])
    grow(job, 3000)
    job.open().delete("id % 10 = 3")


def grow(job, start):
    """Append rows in the schema of now."""
    t = job.open().to_table(limit=8)
    ids = pa.array(range(start, start + t.num_rows), pa.int64())
    job.write(t.set_column(t.schema.get_field_index("id"), t.schema.field("id"), ids))


@recipe
def configured(job):
    """Configuration and metadata of the table, and the engine's own clean-up settings."""
    job.write(job.rows(10), auto_cleanup_options={"interval": 50, "older_than": timedelta(days=7)})
    job.open().update_config({"my.key": "ü"})
    job.open().update_schema_metadata({"note": "kept"})
    job.appends(8, 5, 100)


INDICES = {"BTREE": "number", "BITMAP": "number", "ZONEMAP": "number", "BLOOMFILTER": "number", "LABEL_LIST": "labels", "INVERTED": "text",
           "NGRAM": "text", "IVF_PQ": "vector", "IVF_HNSW_SQ": "vector", "IVF_FLAT": "vector"}


@recipe
def indices(job):
    """A dataset for each kind of index, over the first fragments of several; with --stable, of stable row ids."""
    def some(n, start):
        r = range(start, start + n)
        return pa.table({"id": pa.array(r, pa.int64()), "number": pa.array([None if i % 13 == 5 else i % 19 for i in r], pa.int64()),
                         "labels": pa.array([[f"label {j}" for j in range(i % 4 + 1)] for i in r], pa.list_(pa.utf8())),
                         "text": [f"word{i % 17} and word{i % 5}" for i in r],
                         "vector": pa.array([[job.rng.random() for _ in range(16)] for _ in r], pa.list_(pa.float32(), 16))})
    top = job.uri.removesuffix(".lance")
    for kind, column in INDICES.items():
        job.uri = f"{top}/{kind}.lance"
        for i in range(5):
            job.write(some(80, 80 * i), **({} if i else {"enable_stable_row_ids": job.o.stable}))
        if column == "vector":
            pq = {"num_sub_vectors": 4} if kind == "IVF_PQ" else {}
            job.open().create_index(column, kind, num_partitions=2, **pq)
        else:
            job.open().create_scalar_index(column, kind)
        job.write(some(30, 1000))
        job.write(some(30, 1030))
        job.open().delete("id % 11 = 4")
    job.uri = top


@recipe
def legacy(job):
    """Data files of the first format: pruned, never rewritten."""
    job.appends(5, 10, data_storage_version="legacy")
    job.open().delete("id % 10 = 3")


@recipe
def blobs(job):
    """Blobs of the second kind: within the data file, packed, and in files of their own; empty ones and nulls. Rows go, fragments go, all goes."""
    def some(n, start):
        return pa.table({"id": pa.array(range(start, start + n), pa.int64()), "blob": lance.blob_array(
            [None if i % 6 == 5 else b"" if i % 6 == 4 else job.rng.randbytes((100, 3000, 9000, 20000)[i % 6]) for i in range(start, start + n)])},
            schema=pa.schema([pa.field("id", pa.int64()), lance.blob_field("blob", inline_size_threshold=1000, dedicated_size_threshold=8000)]))
    for i in range(3):
        job.write(some(12, 12 * i))
    job.open().delete("id % 12 = 2 or id < 12")
    job.write(some(12, 100), mode="overwrite")
    for i in range(3):
        job.write(some(12, 200 + 12 * i))
    job.open().delete("id % 5 = 1 or id >= 224")


@recipe
def root(job):
    """A LanceDB database folder of three tables."""
    import lancedb
    job.uri = job.uri.removesuffix(".lance")
    db = lancedb.connect(job.uri, storage_options=storage_options(job.uri))
    for i, name in enumerate(("users", "_stats.rollout", "docs-2026")):
        table = db.create_table(name, job.rows(10))
        for j in range(3 * i):
            table.delete(f"id = {j}")
            table.add(job.rows(1, j))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("recipe", choices=sorted(RECIPES))
    p.add_argument("--out", required=True)
    p.add_argument("--name", help="of the dataset; default: the recipe's")
    p.add_argument("--storage", default="2.2", choices=("2.0", "2.1", "2.2"), help="data file version")
    p.add_argument("--count", type=int, default=40, help="upserts")
    p.add_argument("--keys", type=int, default=20)
    p.add_argument("--rows", type=int, default=1000, help="of a fragment of types")
    p.add_argument("--no-nulls", action="store_true")
    p.add_argument("--branch-as", default="", help="scheme through which the first of branches is made")
    p.add_argument("--stable", action="store_true", help="stable row ids")
    p.add_argument("--age-days", type=float, default=30)
    job = Job(p.parse_args())
    RECIPES[job.o.recipe](job)
    if job.o.age_days:
        age(job.uri, job.o.age_days)
    print(json.dumps({"uri": job.uri, "notes": job.notes}))


if __name__ == "__main__":
    main()
