"""Runs Yosys jobs, as a process of its own (see :mod:`gen.emit.yosys`), because a Yosys error ends the process.

Reads ``[[name, log, [command, ...]], ...]`` from the JSON file given. Each job runs in a fork with a fresh
design: what it writes depends on nothing but its commands, not on the jobs before it. Writes one line
``done NAME`` or ``failed NAME`` per job and stops at the first failure.
"""

import json
import os
import sys

from pyosys import libyosys as ys  # pyright: ignore[reportAttributeAccessIssue]


def run(log: str, commands: list[str]) -> None:
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    design = ys.Design()
    for command in commands:
        design.run_pass(command)
    ys.log_flush()


def main(request: str) -> int:
    with open(request) as file:
        jobs = json.load(file)
    for name, log, commands in jobs:
        pid = os.fork()
        if pid == 0:
            try:
                run(log, commands)
            except BaseException as error:
                os.write(2, f"ERROR: {error}\n".encode())
                os._exit(1)
            os._exit(0)
        failed = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print("failed" if failed else "done", name, flush=True)
        if failed:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
