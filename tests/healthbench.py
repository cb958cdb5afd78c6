"""HealthBench files for tests: the published one where it is, and one of its shape always."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.program import ROOT

FILE = "healthbench_context_seeking_104.jsonl"


def published() -> Path | None:
    """Return the published file, or None; it is not ours to copy into the project."""
    folder = os.environ.get("DISTRESSBENCH_TEST_DATA") or ROOT.parent / "shared" / "data"
    path = Path(folder) / FILE
    return path if path.is_file() else None


def example(number: int, turns: int = 1, reference: bool = True) -> dict[str, Any]:
    """Return an example with all that the published ones have, in fictional words."""
    prompt = []
    for turn in range(turns):
        role = "user" if turn % 2 == 0 else "assistant"
        prompt.append({"role": role, "content": f"Turn {turn} of example {number}: I sleep badly."})
    ideal = {
        "ideal_completion": f"That sounds tiring. How long has it been so? ({number})\n\nTell me.",
        "ideal_completions_group": None,
        "ideal_completions_ref_completions": ["Sleep is important.", "See a doctor. 🙂"],
    }
    return {
        "example_tags": ["theme:context_seeking", "physician_agreed_category:enough-context"],
        "ideal_completions_data": ideal if reference else None,
        "prompt": prompt,
        "prompt_id": f"{number:08d}-0000-4000-8000-000000000000",
        "rubrics": [
            {
                "criterion": f"Asks how long it has been so. ({number})\n\n{'It asks. ' * 60}",
                "points": 5,
                "tags": ["level:cluster", "axis:context_awareness"],
            },
            {"criterion": "Is plain.", "points": 20, "tags": ["axis:communication quality"]},
        ],
        "canary": "healthbench:00000000-0000-0000-0000-000000000000",
    }


def examples() -> list[dict[str, Any]]:
    """Return 104 examples, half of them with up to 15 turns, three without a reference."""
    return [
        example(number, turns=1 if number % 2 else 1 + 2 * (number % 8), reference=number % 40 != 0)
        for number in range(1, 105)
    ]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSON Lines, with escapes and spaces as others write them."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def canonical(path: Path) -> list[str]:
    """Return the examples of a file in one form and one order."""
    # Not splitlines(): texts hold other line separators.
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    return sorted(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows)
