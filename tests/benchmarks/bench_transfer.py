"""Import and export of a corpus of the published size, and of other sizes beside it.

python tests/benchmarks/bench_transfer.py [SIZE ...], where 1 is 718 conversations, 6,901 criteria
and 17,950 replies. Targets: at size 1 ten seconds each; seconds per row and memory flat to size 10.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from corpus.schema import canonical_json
from tests.program import ROOT, SECRET_KEY
from tests.scoring.bundles import AT, write_lines

CONVERSATIONS, CRITERIA, MODELS = 718, 6_901, 25
WORDS = ("it", "is", "a", "bad", "night", "and", "nobody", "knows", "how", "tired", "this", "is")


def paragraph(seed: int, words: int) -> str:
    """Return plain text of a given length that differs by seed."""
    return " ".join(WORDS[(seed * 7 + n * n) % len(WORDS)] for n in range(words)) + f" {seed}."


def rows(size: int) -> dict[str, list[dict[str, object]]]:
    """Return the tables of a corpus."""
    conversations = [f"c-{number:06d}" for number in range(CONVERSATIONS * size)]
    at = {"collection": "bench"}
    tables: dict[str, list[dict[str, object]]] = {
        "collections": [{"slug": "bench", "name": "Bench", "description": "", "source": {}}],
        "dimensions": [
            {**at, "slug": "d", "name": "D", "description": "", "stance": "act", "position": 1}
        ],
        "respondents": [
            {"slug": f"m-{n:02d}", "name": f"M {n}", "kind": "model", "family": "", "config": {}}
            for n in range(MODELS)
        ],
    }
    for table in ("conversations", "criteria", "rubrics", "replies"):
        tables[table] = []
    for number, key in enumerate(conversations):
        of = {**at, "conversation": key}
        count = CRITERIA // CONVERSATIONS + (number % CONVERSATIONS < CRITERIA % CONVERSATIONS)
        tables["conversations"].append(
            {
                **at,
                "key": key,
                "subcategory": None,
                "locale": "en-GB",
                "turns": [{"role": "user", "text": paragraph(number, 60)}],
                "status": "active",
                "authors": [],
                "source": {},
                "supersedes": None,
            }
        )
        names = [f"k{n:02d}" for n in range(count)]
        tables["criteria"] += [
            {
                **of,
                "key": name,
                "text": paragraph(number + n, 14),
                "same_meaning_as": None,
                "reason": "",
                "source": {},
            }
            for n, name in enumerate(names)
        ]
        tables["rubrics"].append(
            {
                **of,
                "version": 1,
                "status": "published",
                "published_at": AT,
                "author": "",
                "change_note": "",
                "items": [
                    {"criterion": name, "dimension": "d", "weight": 1 + n % 20, "position": n}
                    for n, name in enumerate(names)
                ],
            }
        )
        tables["replies"] += [
            {
                **of,
                "respondent": f"m-{n:02d}",
                "sample": 0,
                "turns": [paragraph(number * n, 150)],
                "outcome": "answered",
                "finish_reason": "stop",
                "returned_model": "",
                "authors": [],
                "source": {},
                "replied_on": "2026-10-01",
                "created_at": AT,
            }
            for n in range(MODELS)
        ]
    return tables


def run(folder: Path, *arguments: str) -> tuple[float, float]:
    """Run a command; returns seconds and the peak of its memory in MB."""
    environment = {
        **os.environ,
        "SECRET_KEY": SECRET_KEY,
        "DISTRESSBENCH_DATA": str(folder),
        "DATABASE_URL": os.environ.get("DATABASE_URL", ""),
    }
    program = (
        "import resource, runpy, sys; sys.argv = ['manage.py', *sys.argv[1:]];\n"
        "try: runpy.run_path('manage.py', run_name='__main__')\n"
        "finally: print('PEAK', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return time.monotonic() - began, float(done.stdout.split()[-1])


def main(sizes: list[int]) -> None:
    """Print seconds, memory and their ratios to the first size."""
    found = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            lines = {
                name: [canonical_json(row).encode() for row in table]
                for name, table in rows(size).items()
            }
            count = sum(map(len, lines.values()))
            write_lines(folder / "given", lines)
            del lines
            run(folder, "migrate", "--verbosity", "0")
            start, _ = run(folder, "check")
            taken, peak = run(folder, "import_corpus", str(folder / "given"), "--json")
            out, out_peak = run(
                folder, "export_bundle", str(folder / "out"), "--collection", "bench"
            )
            found.append((size, count, start, taken, peak, out, out_peak))
            for table in ("replies", "criteria"):
                same = (folder / "given" / f"{table}.jsonl").read_bytes()
                assert same == (folder / "out" / f"{table}.jsonl").read_bytes()
    first = found[0]
    for size, count, start, taken, peak, out, out_peak in found:
        report = {
            "size": size,
            "rows": count,
            "start of the program, s": round(start, 2),
            "import, s": round(taken, 2),
            "import, s per row against the first": round(taken / count / (first[3] / first[1]), 2),
            "import, peak MB": round(peak),
            "export, s": round(out, 2),
            "export, s per row against the first": round(out / count / (first[5] / first[1]), 2),
            "export, peak MB": round(out_peak),
        }
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [1, 3])
