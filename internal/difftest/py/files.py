"""files.py URI: which files the manifests at URI name, against which files there are.

Prints {"missing": [...], "unnamed": [...], "foreign": [...], "manifests": N}. Missing: named by a manifest, not there.
Unnamed: one of the format's files that no manifest names, with its age in days. Foreign: not one of the format's files.
Reads manifests by itself, without the official engine and without ours (field numbers: lance-format/lance
protos/table.proto, protos/fragment_metadata.proto). Branches count: their own folder, and what they name in this one.
"""

import json
import os
import re
import struct
import sys

from place import files, folder

KNOWN = re.compile(r"(data/[^/]+\.lance|_deletions/[^/]+\.(arrow|bin)|_transactions/[^/]+\.txn|_indices/[0-9a-f-]{36}/.+|_versions/(d?\d+|.*-[0-9a-f-]{36})\.manifest.*)$")
ATTACHED = re.compile(r"_versions/d?\d+\.manifest$")


def message(data):
    """Fields of a protobuf message: {number: [int or bytes, ...]}."""
    out, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        size = {0: 0, 1: 8, 5: 4}.get(key & 7)
        if size is None:
            size = varint()
        value = varint() if key & 7 == 0 else data[at:at + size]
        at += size
        out.setdefault(key >> 3, []).append(value)
    return out


def section(data, at):
    """The message whose length stands at position `at` of a manifest file."""
    size = struct.unpack_from("<I", data, at)[0]
    return message(data[at + 4:at + 4 + size])


def named(data, uri):
    """What one manifest file names: paths below its own root, and below `uri` through base paths."""
    if data[-4:] != b"LANC":
        raise ValueError("no manifest: footer missing")
    top = section(data, struct.unpack_from("<q", data, len(data) - 16)[0])
    bases = {m.get(1, [0])[0]: m.get(4, [b""])[0].decode() for m in map(message, top.get(18, []))}
    own, elsewhere = set(), set()

    def add(path, base):
        if base is None:
            own.add(path)
        elif os.path.realpath(folder(bases[base].rstrip("/"))) == os.path.realpath(folder(uri)):
            elsewhere.add(path)
    for fragment in map(message, top.get(2, [])):
        for f in map(message, fragment.get(2, [])):
            add("data/" + f[1][0].decode(), f.get(7, [None])[0])
        for d in map(message, fragment.get(3, [])):
            end = "bin" if d.get(1, [0])[0] else "arrow"
            add(f"_deletions/{fragment.get(1, [0])[0]}-{d.get(2, [0])[0]}-{d.get(3, [0])[0]}.{end}", d.get(7, [None])[0])
    if 12 in top:
        own.add("_transactions/" + top[12][0].decode())
    if 6 in top:
        for index in map(message, section(data, top[6][0]).get(1, [])):
            raw = message(index[1][0])[1][0].hex()
            name = message(index.get(6, [b""])[0]).get(1, [b""])[0]
            folder_ = "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:])) + "/"
            if not name.endswith((b"FragmentReuseIndexDetails", b"MemWalIndexDetails")):
                add(f"_indices/{folder_}", index.get(9, [None])[0])
    return own, elsewhere


def account(uri):
    there = files(uri)
    need, count = set(), 0
    for path in there:
        if not ATTACHED.search(path) or "/" in path.split("_versions/")[1]:
            continue
        prefix = path.split("_versions/")[0]
        with open(os.path.join(folder(uri), path), "rb") as f:
            own, elsewhere = named(f.read(), uri)
        need |= {prefix + p for p in own} | elsewhere | {path}
        count += 1
    folders = tuple(p for p in need if p.endswith("/"))
    inside = {f for f in folders if any(p.startswith(f) for p in there)}
    rest = [p for p in sorted(there) if p not in need and not p.startswith(folders) and not p.endswith("_versions/latest_version_hint.json")]
    of_format = {p for p in rest if KNOWN.match(re.sub(r"^tree/.*?/(?=_|data/)", "", p))}
    return {"manifests": count, "missing": sorted(p for p in need if p not in there and p not in inside),
            "unnamed": [{"path": p, "ageDays": there[p][1]} for p in rest if p in of_format],
            "foreign": [p for p in rest if p not in of_format and not p.startswith("_refs/")]}


if __name__ == "__main__":
    print(json.dumps(account(sys.argv[1].rstrip("/"))))
