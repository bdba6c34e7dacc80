"""use.py URI: go on using a copy of the dataset with the official engines, as its owner would.

The copy is opened, some of its rows are taken one by one, it is appended to, deleted from, upserted into, compacted and cleaned by pylance, then opened by lancedb;
after each step the rows must be what the step makes of them. Prints {"steps": [...]}, exits 1 with the first that fails.
"""

import json
import os
import shutil
import sys
import tempfile
from datetime import timedelta

import lance
import lancedb
import pyarrow as pa

from dump import digest
from place import folder, tables


def check(step, got, want, steps):
    if got != want:
        sys.exit(f"{step}: got {got}, want {want}")
    steps.append(step)


def fresh(table, ids):
    """Rows of the table's own schema under new ids, made of its first row (or of nulls)."""
    columns = []
    for field in table.schema:
        if field.name == "id":
            columns.append(pa.array(ids, field.type))
        else:
            columns.append(pa.concat_arrays([table[field.name].slice(0, 1).combine_chunks()] * len(ids)) if table.num_rows else pa.nulls(len(ids), field.type))
    return pa.table(columns, schema=table.schema)


def use(uri):
    """One dataset with an integer column `id`, in place."""
    steps = []
    table = lance.dataset(uri).to_table()
    n, far = table.num_rows, 2**40
    single = [i * (n - 1) // 20 for i in range(21)] if n else []
    if single:
        want = pa.concat_tables([table.slice(i, 1) for i in single])
        check("take", digest(lance.dataset(uri).take(single))["bag"], digest(want)["bag"], steps)
    lance.write_dataset(fresh(table, [far, far + 1]), uri, mode="append")
    check("append", lance.dataset(uri).count_rows(), n + 2, steps)
    lance.dataset(uri).delete(f"id = {far}")
    check("delete", lance.dataset(uri).count_rows(f"id >= {far}"), 1, steps)
    lance.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(fresh(table, [far + 1, far + 2]))
    check("upsert", sorted(lance.dataset(uri).to_table(filter=f"id >= {far}")["id"].to_pylist()), [far + 1, far + 2], steps)
    lance.dataset(uri).delete(f"id >= {far}")
    before = digest(lance.dataset(uri).to_table())
    check("rows", before["bag"], digest(table)["bag"], steps)
    if lance.dataset(uri).data_storage_version != "0.1":
        lance.dataset(uri).optimize.compact_files()
        check("compact", digest(lance.dataset(uri).to_table())["bag"], before["bag"], steps)
    lance.dataset(uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False)
    check("clean up", digest(lance.dataset(uri).to_table())["bag"], before["bag"], steps)
    opened = lancedb.connect(os.path.dirname(uri)).open_table(os.path.basename(uri).removesuffix(".lance"))
    check("lancedb", digest(opened.to_arrow())["bag"], before["bag"], steps)
    return steps


def main():
    uri, out = sys.argv[1].rstrip("/"), {}
    with tempfile.TemporaryDirectory() as top:
        for table in tables(uri):
            copy = os.path.join(top, os.path.basename(table))
            shutil.copytree(folder(table), copy)
            out[os.path.basename(table)] = use(copy)
    print(json.dumps({"tables": out}))


if __name__ == "__main__":
    main()
