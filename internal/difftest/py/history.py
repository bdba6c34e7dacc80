"""history.py URI SEED: makes a random history with the official engine, a few steps for each line `step` on standard input; for
each line `check` reads all there is and says what is not as it was: {"did": [...], "wrong": [...], "pinned": [...]}, a line.

Before a check anybody may have removed versions and rewritten the latest; pinned are versions that must still be there.
"""

import json
import os
import random
import sys

import lance
import pyarrow as pa

from dump import digest
from files import account
from place import files, folder


class History:
    def __init__(self, uri, seed):
        self.uri, self.rng, self.ids = uri, random.Random(seed), 0
        self.v2_names = self.rng.random() < 0.8
        self.held = {}      # (branch or None, version): hash of the rows as a bag
        self.tags = {}      # name: (branch or None, version)
        self.branches = {}  # name: (branch or None, version) where it starts
        self.detached = {}  # version: hash
        lance.write_dataset(self.rows(8), uri, data_storage_version=self.rng.choice(("2.0", "2.1", "2.2")),
                            enable_stable_row_ids=self.rng.random() < 0.3, enable_v2_manifest_paths=self.v2_names)
        self.note(None)

    def rows(self, n):
        start, self.ids = self.ids, self.ids + n
        ids = range(start, start + n)
        return pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array([None if i % 5 == 3 else f"row {i}" for i in ids], pa.utf8())})

    def at(self, branch, version=None):
        ds = lance.dataset(self.uri)
        return ds.checkout_version((branch, version)) if branch or version else ds

    def hash(self, ds):
        return digest(ds.to_table())["bag"]

    def note(self, branch):
        """Keep what the new versions hold; a compaction makes several."""
        for v in self.at(branch).versions():
            if (branch, v["version"]) not in self.held:
                self.held[branch, v["version"]] = self.hash(self.at(branch, v["version"]))

    def some(self, branch=None):
        """A version that is listed."""
        return self.rng.choice(self.at(branch).versions())["version"]

    def where(self):
        """The main history mostly, or a branch."""
        return self.rng.choice([None, None, *self.branches])

    # Steps; each returns the branch whose history has grown, or False.

    def append(self):
        branch = self.where()
        lance.write_dataset(self.rows(self.rng.randint(1, 6)), self.at(branch), mode="append")
        return branch

    def delete(self):
        branch = self.where()
        self.at(branch).delete(f"id % {self.rng.randint(2, 9)} = 1")
        return branch

    def update(self):
        branch = self.where()
        self.at(branch).update({"text": f"'updated {self.ids}'"}, where=f"id % {self.rng.randint(2, 9)} = 0")
        return branch

    def upsert(self):
        new = self.rows(3)
        new = new.set_column(0, "id", pa.array([i if i % 2 else i // 2 for i in new["id"].to_pylist()], pa.int64()))
        self.at(None).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)

    def overwrite(self):
        lance.write_dataset(self.rows(9), self.at(None), mode="overwrite")

    def compact(self):
        branch = self.where()
        self.at(branch).optimize.compact_files()
        return branch

    def restore(self):
        self.at(None, self.some()).restore()

    def index(self):
        self.at(None).create_scalar_index("id", self.rng.choice(("BTREE", "BITMAP")), replace=True)

    def abandon(self):
        lance.fragment.write_fragments(self.rows(4), self.uri, mode="append")
        return False

    def detach(self):
        if not self.v2_names:
            return False  # the engine does not do it
        ds = self.at(None)
        made = lance.LanceDataset.commit(ds, lance.LanceOperation.Append(lance.fragment.write_fragments(self.rows(2), ds, mode="append")),
                                         read_version=ds.version, detached=True)
        self.detached[made.version] = self.hash(made)
        return False

    def tag(self):
        branch, name = self.where(), f"tag{self.rng.randint(0, 3)}"
        self.untag(name)
        self.tags[name] = (branch, self.some(branch))
        self.at(None).tags.create(name, self.tags[name] if branch else self.tags[name][1])
        return False

    def untag(self, name=None):
        name = name or self.rng.choice(["none", *self.tags])
        if self.tags.pop(name, None):
            self.at(None).tags.delete(name)
        return False

    def branch(self):
        parent, name = self.where(), self.rng.choice(("side", "deep", "team/work"))
        if name in self.branches:
            return False
        start = (parent, self.some(parent))
        made = self.at(*start).create_branch(name, start if parent else start[1])
        self.branches[name] = start
        self.held[name, made.version] = self.hash(made)
        return False

    def unbranch(self):
        leaves = [b for b in self.branches if b not in [p for p, _ in self.branches.values()] + [p for p, _ in self.tags.values()]]
        if leaves:
            name = self.rng.choice(leaves)
            self.at(None).branches.delete(name)
            del self.branches[name]
            self.held = {k: v for k, v in self.held.items() if k[0] != name}
        return False

    def wait(self):
        """Time goes by, as files tell it."""
        seconds = self.rng.choice((600, 5400, 86400, 8 * 86400))
        for path in files(self.uri):
            path = os.path.join(folder(self.uri), path)
            s = os.stat(path)
            os.utime(path, (s.st_atime - seconds, s.st_mtime - seconds))
        return False

    STEPS = (append, append, append, delete, delete, update, upsert, overwrite, compact, restore, index, abandon, detach, tag, tag, untag,
             branch, branch, unbranch, wait, wait)

    def step(self):
        step = self.rng.choice(self.STEPS)
        grown = step(self)
        if grown is not False:
            self.note(grown)
        return step.__name__

    def check(self):
        """What is not as it was."""
        wrong, known = [], max(v for b, v in self.held if b is None)
        latest = self.held[None, known]

        def same(what, want, read):
            try:
                got = self.hash(read())
            except Exception as err:
                wrong.append(f"{what} can't be read: {err!r:.300}")
                return
            if got != want:
                wrong.append(f"{what} has other rows")
        for branch in (None, *self.branches):
            for v in self.at(branch).versions():
                v = v["version"]
                if branch is None and v > known:
                    self.held[None, v] = latest  # of a pass: the same rows
                same(f"version {v} of {branch or 'main'}", self.held[branch, v], lambda: self.at(branch, v))
        for name, at in self.tags.items():
            same(f"tag {name}", self.held[at], lambda: lance.dataset(self.uri, version=name))
        for v, want in self.detached.items():
            same(f"detached version {v}", want, lambda: self.at(None, v))
        for branch in self.branches:
            same(f"latest of {branch}", self.held[branch, max(v for b, v in self.held if b == branch)], lambda: self.at(branch))
        same("the latest version", latest, lambda: self.at(None))
        return wrong + [f"missing: {path}" for path in self.missing() if path not in self.lacking]

    def missing(self):
        return account(self.uri)["missing"]

    def steps(self):
        did = [self.step() for _ in range(self.rng.randint(1, 6))]
        self.lacking = self.missing()  # the engine makes indices over no rows, which have no files
        return did

    def pinned(self):
        return sorted({v for b, v in (*self.tags.values(), *self.branches.values()) if b is None})


def main():
    history = History(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        answer = {"did": history.steps()} if line.strip() == "step" else {"wrong": history.check()}
        print(json.dumps(answer | {"pinned": history.pinned()}), flush=True)


if __name__ == "__main__":
    main()
