"""dump.py URI: what the official engine reads at URI, one JSON document.

{"tables": {name: {version, rows, ordered, bag, columns, schema, versions, tags, branches, indices, fragments}}}: hashes over canonical values, of the
rows in scan order (ordered), of the rows as a bag, and of each column; every listed version with its row count and what a
full scan of it gives (evenly chosen ones where there are more than --versions).
"""

import argparse
import decimal
import hashlib
import json
import os

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from place import storage_options, tables


def exact(array):
    """The values of an array as Python objects that keep every bit; None for null."""
    if isinstance(array, pa.ChunkedArray):
        if pa.types.is_dictionary(array.type):  # those of file version 2.0 have a null item, which can't be joined
            return [value for chunk in array.chunks for value in chunk.to_pylist()]
        array = array.combine_chunks()
        array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    t = array.type
    if pa.types.is_floating(t):
        bits = array.view({16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[t.bit_width])
        return bits.to_pylist()
    if pa.types.is_temporal(t):
        return array.view(pa.int32() if t.bit_width == 32 else pa.int64()).to_pylist()
    if pa.types.is_fixed_size_list(t):
        inner = exact(array.flatten()) if not array.null_count else exact(pc.fill_null(array, zero(t)).flatten())
        n, valid = t.list_size, array.is_valid().to_pylist()
        return [tuple(inner[i * n:(i + 1) * n]) if v else None for i, v in enumerate(valid)]
    return array.to_pylist()


def zero(t):
    """What stands in for a null of a type."""
    if pa.types.is_fixed_size_list(t):
        return pa.scalar([zero(t.value_type).as_py()] * t.list_size, t)
    if pa.types.is_string(t) or pa.types.is_large_string(t):
        return pa.scalar("", t)
    if pa.types.is_binary(t) or pa.types.is_large_binary(t):
        return pa.scalar(b"", t)
    if pa.types.is_decimal(t):
        return pa.scalar(decimal.Decimal(0), t)
    if pa.types.is_temporal(t):
        return pa.scalar(0, pa.int32() if t.bit_width == 32 else pa.int64()).cast(t)
    return pa.scalar(np.float16(0) if pa.types.is_float16(t) else 0 if pa.types.is_integer(t) or pa.types.is_floating(t) else False, t)


def canonical(array):
    """The values of an array as bytes that do not depend on chunks, offsets, or what lies under nulls."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    valid = array.is_valid().to_numpy(zero_copy_only=False).tobytes()
    array = pc.fill_null(array, zero(array.type)).take(pa.array(np.arange(len(array))))
    t = array.type
    if pa.types.is_fixed_size_list(t):
        return valid + canonical(array.flatten())
    if pa.types.is_boolean(t):
        return valid + array.to_numpy(zero_copy_only=False).tobytes()
    if pa.types.is_string(t) or pa.types.is_binary(t) or pa.types.is_large_string(t) or pa.types.is_large_binary(t):
        lengths = pc.binary_length(array).to_numpy(zero_copy_only=False).astype(np.int64)
        return valid + lengths.tobytes() + (array.buffers()[2] or b"")[:int(lengths.sum())]
    return valid + array.buffers()[1].to_pybytes()[:len(array) * t.bit_width // 8]


def digest_large(table):
    """Hashes of a table of many rows: by columns; as a bag in the order of its unique id."""
    def whole(t):
        return {name: hashlib.blake2b(canonical(t[name]), digest_size=16).hexdigest() for name in t.column_names}
    columns = whole(table)
    return {"rows": table.num_rows, "ordered": hashlib.sha256(json.dumps(columns).encode()).hexdigest(),
            "bag": hashlib.sha256(json.dumps(whole(table.sort_by("id"))).encode()).hexdigest(), "columns": columns}


def digest(table):
    """Hashes of a table; every value goes in by its repr, which is exact for what exact() gives."""
    if table.num_rows > 20_000 and "id" in table.column_names:
        return digest_large(table)
    columns, rows = {}, [hashlib.blake2b(digest_size=12) for _ in range(table.num_rows)]
    for name in table.column_names:
        whole = hashlib.blake2b(digest_size=16)
        for row, value in zip(rows, exact(table[name])):
            cell = repr(value).encode() + b"\0"
            whole.update(cell)
            row.update(cell)
        columns[name] = whole.hexdigest()
    rows = [r.digest() for r in rows]
    return {"rows": table.num_rows, "ordered": hashlib.sha256(b"".join(rows)).hexdigest(),
            "bag": hashlib.sha256(b"".join(sorted(rows))).hexdigest(), "columns": columns}


def spread(items, most):
    """At most `most` of the items, evenly, the first and the last among them."""
    if len(items) <= most:
        return items
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def shape(schema):
    """All of a schema as text; the engine gives metadata in no certain order."""
    def metadata(of):
        return sorted((of.metadata or {}).items())
    return str([(f.name, str(f.type), f.nullable, metadata(f)) for f in schema] + metadata(schema))


def payloads(ds):
    """A hash of what the blobs of the second kind hold, by column."""
    names = [f.name for f in ds.schema if "blob" in str(f.type)]
    if not names:
        return {}
    ids = ds.to_table(columns=["id"], with_row_id=True)
    def read(name):
        blobs = ds.take_blobs(name, ids=ids["_rowid"].to_pylist())
        return sorted((i, None if b is None else b.readall()) for i, b in zip(ids["id"].to_pylist(), blobs, strict=True))
    return {name: hashlib.sha256(repr(read(name)).encode()).hexdigest() for name in names}


def dump(uri, most):
    def at(version=None):
        return lance.dataset(uri, version=version, storage_options=storage_options(uri))
    ds = at()
    versions = [{"version": v["version"]} for v in ds.versions()]
    for v in spread(versions, most):
        old = at(v["version"])
        v["rows"] = old.count_rows()
        v["scan"] = sum(b.num_rows for b in old.scanner().to_batches())
    tags = {}
    for name, tag in ds.tags.list().items():
        where = (tag.get("branch"), tag["version"]) if tag.get("branch") else tag["version"]
        tags[name] = {"version": tag["version"], "branch": tag.get("branch"), "rows": ds.checkout_version(where).count_rows()}
    branches = {}
    for name in ds.branches.list():
        branch = ds.checkout_version((name, None))
        branches[name] = {"version": branch.version, **digest(branch.to_table())}
    lineage = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"] if ds.has_stable_row_ids else []
    return {"version": ds.version, **digest(ds.to_table(columns=ds.schema.names + lineage)), "schema": shape(ds.schema), "versions": versions, "tags": tags, "branches": branches,
            "answers": {q: ds.count_rows(q) for q in ("id = 7", "id < 20", "id >= 1010 and id < 1030", "id = 1001", "id != 3")} if ds.list_indices() else {},
            "blobs": payloads(ds), "indices": sorted(i["name"] for i in ds.list_indices()), "config": ds.config(),
            "fragments": [[f.fragment_id, f.physical_rows, f.num_deletions] for f in ds.get_fragments()]}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("uri")
    p.add_argument("--versions", type=int, default=60, help="scan this many versions at most")
    a = p.parse_args()
    print(json.dumps({"tables": {os.path.basename(t): dump(t, a.versions) for t in tables(a.uri.rstrip("/"))}}))


if __name__ == "__main__":
    main()
