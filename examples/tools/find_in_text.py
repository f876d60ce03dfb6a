"""Finds the first match of a regular expression in a text.

Reads one JSON object from standard input, {"pattern": ..., "text": ...}, and prints one line of JSON. The search is
Python's own, and so a pattern such as (a+)+$ can keep it busy for hours: whoever calls this needs a time limit that
holds.
"""

import json
import re
import sys


def find(pattern: str, text: str) -> dict:
    match = re.search(pattern, text)
    if match is None:
        return {"found": False}
    return {"found": True, "match": match.group(), "start": match.start(), "end": match.end()}


def main() -> int:
    arguments = json.load(sys.stdin.buffer)
    try:
        answer = find(arguments["pattern"], arguments["text"])
    except re.error as error:
        print(f"not a regular expression: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
