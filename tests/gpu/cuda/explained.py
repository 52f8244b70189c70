#!/usr/bin/env python3
"""How much of each phase's change the named rows of a comparison explain.

    ggprof diff A B --format json | explained.py

Without a name are splits whose ops are not known, and what medians do not add up to.
"""

import json
import sys

diff = json.load(sys.stdin)
for phase in diff["phases"]:
    rows = [row for row in diff["contributions"] if row["phase"] == phase["phase"]]
    change = phase["change_ns"]
    if not change:
        continue
    unnamed = [row for row in rows if row["op"] == "SPLIT" or row["op"].startswith("what medians")]
    left = sum(row["change_ns"] for row in unnamed)
    everything = sum(row["change_ns"] for row in rows)
    print(
        f"{phase['phase']}: {change / 1e3:+.2f} µs per token{phase['noise']},"
        f" all rows {everything / change:.4f} of it, named rows {1 - abs(left / change):.4f}"
    )
