"""ask.py URI: what queries find through the indices of the datasets that the recipe indices made.

Prints {name: {"answers": {query: [id, ...]}, "used": whether the plans go through the index, "fragments": n}}. Exits 1 where an
answer is not that of a scan without the index. Nearest neighbours are ranked anew by their values, so that what an index rounds
does not count.
"""

import json
import os
import sys

import lance

from place import storage_options, tables

FILTERS = {"BTREE": ["number = 7", "number >= 11 and number < 15", "number != 3"], "BITMAP": ["number = 7", "number in (1, 2)", "number is null"],
           "ZONEMAP": ["number = 7", "number > 15", "number is null"], "BLOOMFILTER": ["number = 7", "number = 100000"],
           "LABEL_LIST": ["array_has_any(labels, ['label 3'])", "array_has_all(labels, ['label 1', 'label 2'])"],
           "NGRAM": ["contains(text, 'word7')", "contains(text, 'nowhere')"]}
WORDS = ["word7", "word11", "nowhere"]
POINTS = [[0.0] * 16, [i / 16 for i in range(16)], [1.0] * 16]


def ids(table):
    return sorted(table["id"].to_pylist())


def filters(ds, kind):
    answers, plans = {}, []
    for f in FILTERS[kind]:
        answers[f] = ids(ds.to_table(columns=["id"], filter=f))
        plans.append("ScalarIndex" in ds.scanner(columns=["id"], filter=f).explain_plan(True))
    return answers, {f: ids(ds.to_table(columns=["id"], filter=f, use_scalar_index=False)) for f in FILTERS[kind]}, all(plans)


def words(ds):
    rows = ds.to_table(columns=["id", "text"]).to_pylist()
    answers = {w: ids(ds.to_table(columns=["id"], full_text_query=w)) for w in WORDS}
    return answers, {w: sorted(r["id"] for r in rows if r["text"] and w in r["text"].split()) for w in WORDS}, True


def nearest(ds):
    def ask(point, use_index):
        q = {"column": "vector", "q": point, "k": 10, "use_index": use_index}
        if use_index:
            q |= {"nprobes": 1000, "refine_factor": 100}
        return ds.scanner(columns=["id"], nearest=q)
    plans = ["ANN" in ask(p, True).explain_plan(True) for p in POINTS]
    return ({str(p): ids(ask(p, True).to_table()) for p in POINTS}, {str(p): ids(ask(p, False).to_table()) for p in POINTS}, all(plans))


def main():
    out = {}
    for uri in tables(sys.argv[1].rstrip("/")):
        name = os.path.basename(uri).removesuffix(".lance")
        ds = lance.dataset(uri, storage_options=storage_options(uri))
        answers, scanned, used = filters(ds, name) if name in FILTERS else words(ds) if name == "INVERTED" else nearest(ds)
        if answers != scanned:
            sys.exit(f"{name}: by index {answers}, by scan {scanned}")
        if not any(answers.values()):
            sys.exit(f"{name}: no query finds anything")
        out[name] = {"answers": answers, "used": used, "fragments": len(ds.get_fragments())}
    print(json.dumps(out))


if __name__ == "__main__":
    main()
