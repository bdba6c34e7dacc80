"""summary.py FOLDER: what the test run in FOLDER came to, last line `N passed, N failed, N skipped`; exits 1 on failures."""

import collections
import json
import pathlib
import re
import sys


def main():
    folder = pathlib.Path(sys.argv[1])
    counts, lines = collections.Counter(), []
    checks = folder / "checks.tsv"
    for line in checks.read_text().splitlines() if checks.exists() else []:
        status, name, reason = (line.split("\t") + [""])[:3]
        counts[status] += 1
        if status != "pass":
            lines.append(f"{status.upper()}  {name}  {reason}")
    for path in sorted(folder.glob("*.json")):
        stage, output = collections.Counter(), collections.defaultdict(str)
        for event in map(json.loads, path.read_text().splitlines()):
            test, action = (event.get("Package"), event.get("Test")), event.get("Action")
            if not test[1]:
                continue
            if action == "output":
                output[test] = (output[test] + event["Output"])[-2000:]
            if action in ("pass", "fail", "skip"):
                stage[action] += 1
                if action == "fail":
                    lines.append(f"FAIL  {path.stem}: {test[0]} {test[1]}")
                if action == "skip":
                    reason = re.findall(r"_test\.go:\d+: (.*)", output[test])
                    lines.append(f"SKIP  {path.stem}: {test[0]} {test[1]}: {reason[-1] if reason else 'no reason given'}")
        counts.update(stage)
        print(f"{path.stem}: {stage['pass']} passed, {stage['fail']} failed, {stage['skip']} skipped")
    print(*lines, sep="\n")
    print(f"{counts['pass']} passed, {counts['fail']} failed, {counts['skip']} skipped")
    sys.exit(1 if counts["fail"] or not counts["pass"] else 0)


main()
