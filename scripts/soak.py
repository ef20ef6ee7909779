"""The long tests, one after the other: more seeds, commands, sizes and mutants than ``make test`` has time for.

Every test that has a long form (it takes the fixture ``extent``) runs in it, in a process of its own. What has passed
is noted in build/soak/SEED.jsonl, so a run that was interrupted goes on where it was when started with its seed.
"""

import argparse
import json
import secrets
import sys
import time
from pathlib import Path
from typing import Any

from gen.emit.process import Stopped, interruptible, run_process, side_by_side
from gen.errors import ToolError

ROOT = Path(__file__).resolve().parents[1]
NOTES = ROOT / "build" / "soak"
#: seconds after which a test hangs
LIMIT = 4 * 3600.0


def pytest_arguments(seed: int) -> list[str]:
    """What repeats a test, without its name."""
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--soak", str(seed)]


def long_tests(seed: int, only: str) -> list[str]:
    """Names of all tests with a long form that contain ``only``."""
    code, text = run_process([*pytest_arguments(seed), "--collect-only", "tests"], tool="pytest", cwd=ROOT)
    if code:
        raise ToolError(f"the tests cannot be collected: {text}")
    return [line for line in text.splitlines() if line.startswith("tests/") and "::" in line and only in line]


def notes(path: Path) -> list[dict[str, Any]]:
    """What is known of earlier runs."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def left(tests: list[str], jobs: int) -> str:
    """About how long these take, from earlier runs of any seed."""
    if not tests:
        return "nothing is left"
    known: dict[str, float] = {}
    for path in sorted(NOTES.glob("*.jsonl")):
        known |= {note["test"]: note["seconds"] for note in notes(path)}
    if not known:
        return "no earlier run tells how long they take"
    mean = sum(known.values()) / len(known)
    seconds = sum(known.get(test, mean) for test in tests) / jobs
    return f"about {seconds / 60:.0f} minutes"


def run(test: str, seed: int) -> tuple[bool, float, str]:
    """One test: whether it passed, its seconds, and what it said."""
    began = time.monotonic()
    try:
        code, text = run_process([*pytest_arguments(seed), test], tool="pytest", cwd=ROOT, timeout=LIMIT)
    except ToolError as error:
        code, text = 1, str(error)
    return code == 0, time.monotonic() - began, text


def soak(seed: int, only: str, jobs: int) -> int:
    """Run all that has not passed with this seed; the exit code."""
    path = NOTES / f"{seed}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    tests = long_tests(seed, only)
    if not tests:
        print(f"soak: no test with a long form has {only!r} in its name", file=sys.stderr)
        return 2
    passed = {note["test"] for note in notes(path) if note["ok"]}
    todo = [test for test in tests if test not in passed]
    print(f"soak: seed {seed}, {len(todo)} of {len(tests)} tests to run; {left(todo, jobs)}", flush=True)
    failed, waiting = [], list(todo)

    def ended(count: int, test: str, result: tuple[bool, float, str]) -> None:
        ok, seconds, text = result
        waiting.remove(test)
        with path.open("a") as file:
            file.write(json.dumps({"test": test, "ok": ok, "seconds": round(seconds, 1)}) + "\n")
        print(f"{count}/{len(todo)} {'passed' if ok else 'FAILED'} {seconds:6.1f} s  {test}"
              f"{f'; left: {left(waiting, jobs)}' if waiting else ''}", flush=True)
        if not ok:
            failed.append(test)
            print(text, flush=True)

    side_by_side(lambda test: run(test, seed), todo, jobs, ended)
    for test in failed:
        print(f"repeat: .venv/bin/python -m pytest '{test}' --soak {seed}")
    print(f"soak: seed {seed}, {len(todo) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the long form of every test that has one.")
    parser.add_argument("--seed", type=int, help="seed of all that is random; drawn and printed if not given")
    parser.add_argument("--only", default="", metavar="TEXT", help="tests with this in their name")
    parser.add_argument("--jobs", type=int, choices=range(1, 65), default=2, metavar="N", help="tests at a time (2)")
    options = parser.parse_args()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    if not 0 <= seed < 2**21:
        parser.error(f"a seed from 0 to {2**21 - 1} was wanted, not {seed}")
    try:
        with interruptible():
            return soak(seed, options.only, options.jobs)
    except ToolError as error:
        print(f"soak: {error}", file=sys.stderr)
        return error.exit_code
    except Stopped as stopped:
        again = f" ONLY='{options.only}'" if options.only else ""
        print(f"soak: interrupted; goes on with: make soak SEED={seed}{again}", file=sys.stderr)
        return 128 + stopped.number


if __name__ == "__main__":
    sys.exit(main())
