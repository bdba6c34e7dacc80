"""clean.py URI [--older-than SECONDS] [--retain N] [--delete-unverified]: the official clean-up. Prints {"failed": N}."""

import argparse
import json
from datetime import timedelta

import lance

from place import storage_options

if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("uri")
    p.add_argument("--older-than", type=float)
    p.add_argument("--retain", type=int)
    p.add_argument("--delete-unverified", action="store_true")
    a = p.parse_args()
    stats = lance.dataset(a.uri, storage_options=storage_options(a.uri)).cleanup_old_versions(
        older_than=None if a.older_than is None else timedelta(seconds=a.older_than), retain_versions=a.retain,
        delete_unverified=a.delete_unverified, error_if_tagged_old_versions=False)
    print(json.dumps({"bytes": stats.bytes_removed, "versions": stats.old_versions}))
