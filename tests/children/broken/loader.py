"""A loader that keeps its account in memory, but for one fault: ``loader.py FAULT``."""

import json
import sys
from typing import Any

FAULT = sys.argv[1]
loaded: set[int] = set()
newest = 0


def answer(asked: dict[str, Any]) -> list[object]:
    global newest
    outranked = asked.get("generation", newest) < newest
    newest = max(newest, asked.get("generation", 0))
    match asked["action"]:
        case "prepare" if FAULT == "greets":
            return ["ready"]
        case "load" if outranked and FAULT != "no fence":
            return [{"fenced": "a newer job loads"}]
        case "load" if FAULT == "refuses":
            return [{"bad": "no such table: conform"}]
        case "load":
            loaded.add(asked["transactionId"])
        case "applied" if FAULT == "claims all":
            return [{"applied": asked["transactionIds"]}]
        case "applied" if FAULT == "forgets":
            return [{"applied": []}]
        case "applied" if FAULT != "no account":
            return [{"applied": sorted(loaded & {*asked["transactionIds"]})}]
        case "rows" if FAULT == "forgets rows":
            return [{"rows": [None for _ in asked["keys"]]}]
        case "rows" if FAULT == "forgets columns":
            return [{"rows": asked["keys"]}]
        case "rows" if FAULT == "rounds":
            return [{"rows": [key | {"qty": "1.0"} for key in asked["keys"]]}]
        case "rows" if FAULT == "answers one row":
            return [{"rows": {}}]
        case "rows" if FAULT == "ends when asked for rows":
            sys.exit(1)
        case "rows" if FAULT == "keeps rows":
            return [{"rows": [key | {"qty": 1, "more": None} for key in asked["keys"]]}]
        case "trim":
            return [{"trimmed": 0}]
    return []


for line in sys.stdin:
    for message in answer(json.loads(line)):
        print(json.dumps(message))
    print(end="\0", flush=True)
