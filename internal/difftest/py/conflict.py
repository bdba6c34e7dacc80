"""conflict.py URI OPERATION: an operation of the official engine on a dataset of the recipe contended.

Prints {"bag", "rows"}: what the latest version then holds. With --rewrite the official engine first plans a compaction of
fragments 1 to 4 and writes its files, then the operation lands, then the compaction is committed: {"committed", "error"};
URI is then a folder with a dataset for each operation, and the answer has an entry for each of them.
"""

import argparse
import json
import os
import sys

import lance
import pyarrow as pa
from lance.optimize import Compaction

from dump import digest
from place import storage_options


def rows(ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"new {i}" for i in ids], "value": pa.array([i / 2 for i in ids], pa.float64())})


def upsert(ds, ids):
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(ids))


def branch(ds):
    """A branch with a version of its own."""
    side = ds.create_branch("side", ds.version)
    lance.write_dataset(rows([9000]), side, mode="append")


OPERATIONS = {
    "append": lambda ds: lance.write_dataset(rows([5000, 5001]), ds, mode="append"),
    "delete-ours": lambda ds: ds.delete("id = 1003"),
    "delete-other": lambda ds: ds.delete("id = 3"),
    "delete-fragment": lambda ds: ds.delete("id >= 1010 and id < 1020"),
    "delete-all-ours": lambda ds: ds.delete("id >= 1000 and id < 1040"),
    "delete-nothing": lambda ds: ds.delete("id = -1"),
    "update-ours": lambda ds: ds.update({"name": "'updated'"}, where="id = 1005"),
    "update-other": lambda ds: ds.update({"name": "'updated'"}, where="id = 5"),
    "upsert-ours": lambda ds: upsert(ds, [1007, 6000]),
    "upsert-other": lambda ds: upsert(ds, [7, 6000]),
    "upsert-new": lambda ds: upsert(ds, [6000, 6001]),
    "index": lambda ds: ds.create_scalar_index("name", "BTREE"),
    "optimize-indices": lambda ds: ds.optimize.optimize_indices(),
    "drop-index": lambda ds: ds.drop_index(ds.list_indices()[0]["name"]),
    "config": lambda ds: ds.update_config({"my.key": "set"}),
    "table-metadata": lambda ds: ds.update_metadata({"note": "set"}),
    "schema-metadata": lambda ds: ds.update_schema_metadata({"note": "set"}),
    "field-metadata": lambda ds: ds.update_field_metadata({"name": {"note": "set"}}),
    "tag": lambda ds: ds.tags.create("now", ds.version),
    "add-column": lambda ds: ds.add_columns({"double": "value * 2"}),
    "add-null-column": lambda ds: ds.add_columns(pa.field("later", pa.int32())),
    "drop-column": lambda ds: ds.drop_columns(["name"]),
    "rename-column": lambda ds: ds.alter_columns({"path": "name", "name": "title"}),
    "overwrite": lambda ds: lance.write_dataset(rows([1, 2]), ds, mode="overwrite"),
    "restore": lambda ds: lance.dataset(ds.uri, version=ds.version - 1).restore(),
    "compact-ours": lambda ds: compact(ds, ours=True),
    "compact-others": lambda ds: compact(ds, ours=False),
    "branch": branch,
}


def task(ds, ours):
    """The planned rewrite of fragments 1 to 4, or of those behind them."""
    tasks = [t for t in Compaction.plan(ds, {"target_rows_per_fragment": 100}).tasks if (min(f.id for f in t.fragments) <= 4) == ours]
    if len(tasks) != 1:
        sys.exit(f"{len(tasks)} tasks planned")
    return tasks[0]


def compact(ds, ours):
    Compaction.commit(ds, [task(ds, ours).execute(ds)])


def rewrite(uri, operation):
    ds = lance.dataset(uri)
    done = task(ds, ours=True).execute(ds)
    OPERATIONS[operation](lance.dataset(uri))
    try:
        Compaction.commit(ds, [done])
    except (OSError, RuntimeError, ValueError) as e:
        return {"committed": False, "error": str(e)[:300]}
    return {"committed": True, "error": ""}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("uri")
    p.add_argument("operation", nargs="?", choices=sorted(OPERATIONS))
    p.add_argument("--rewrite", action="store_true")
    p.add_argument("--list", action="store_true", help="print the names of the operations")
    a = p.parse_args()
    if a.list:
        print(json.dumps(sorted(OPERATIONS)))
        return
    if a.rewrite:
        print(json.dumps({o: rewrite(os.path.join(a.uri, o + ".lance"), o) for o in OPERATIONS}))
        return
    OPERATIONS[a.operation](lance.dataset(a.uri, storage_options=storage_options(a.uri)))
    got = digest(lance.dataset(a.uri, storage_options=storage_options(a.uri)).to_table())
    print(json.dumps({"bag": got["bag"], "rows": got["rows"]}))


if __name__ == "__main__":
    main()
