"""The command ``speculoos``: finds the sub-command, reports errors in one sentence, decides the exit code.

Only the module of the sub-command that was asked for is imported, and it imports heavy packages when it
runs, so help costs a tenth of a second.
"""

import argparse
import importlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from gen.emit.process import Stopped, interruptible
from gen.errors import STANDARD_OUTPUT, ToolError, UserError, naming

__all__ = ["COMMANDS", "main"]

#: sub-commands, each a module in ``speculoos/commands``
COMMANDS = {
    "list": "show the blocks and presets that can be built",
    "new": "write a commented configuration file to start from",
    "check": "validate a design and its Verilog, show its ports and derived figures",
    "verilog": "write a design's Verilog, file list, FuseSoC core and manifest",
    "sim": "run a block's regression on Verilator",
    "demo": "run a language model's matrices through the engine's Verilog",
    "bench": "measure cycles and utilisation in the RTL",
    "synth": "synthesise a design and count its resources",
    "doctor": "check that everything needed is installed",
}
#: exit code of a shell for a process ended by a closed pipe
BROKEN_PIPE = 141


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are :class:`UserError`."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see `{self.prog} --help`")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help; argparse itself would not tell of a full disk."""
        with naming(STANDARD_OUTPUT):
            (file or sys.stderr).write(message)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse everything or raise; an unknown option gets a guess."""
        args, unknown = self.parse_known_args(arguments)
        if unknown:
            from gen.config.config import guess
            option = unknown[0].partition("=")[0]
            known = [o for action in self._actions for o in action.option_strings if o.startswith("--")]
            hint = guess(option, known) if option.startswith("-") else ""
            self.error(f"unknown {'option' if option.startswith('-') else 'argument'} {unknown[0]!r}{hint}")
        return args


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: the work is done. 1: the work failed, or a tool is missing. 2: the input is wrong.
    130: interrupted; 143 and 129: told to end, and left by the terminal.
    """
    _fill_standard_files()
    if sys.stdout is None:
        print("speculoos: error: standard output is closed", file=sys.stderr)
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):    # a name that the terminal cannot show is no reason to stop
        sys.stdout.reconfigure(errors="backslashreplace")
    # A design that is given up half-way, because of an error or an interrupt, is nothing to warn of.
    warnings.filterwarnings("ignore", message=".* created but never used")
    try:
        with interruptible():
            if arguments is None:
                _check_checkout(Path(sys.argv[0]))
            code = _run(list(sys.argv[1:] if arguments is None else arguments))
            with naming(STANDARD_OUTPUT):
                sys.stdout.flush()
            return code
    except UserError as e:
        print(f"speculoos: error: {e}", file=sys.stderr)
        return e.exit_code
    except KeyboardInterrupt as e:
        print("speculoos: interrupted", file=sys.stderr)
        return 128 + (e.number if isinstance(e, Stopped) else signal.SIGINT)
    except BrokenPipeError:
        _give_up_output()               # whoever read it has gone
        return BROKEN_PIPE
    except OSError as e:
        if e.filename == STANDARD_OUTPUT:
            _give_up_output()
        print(f"speculoos: error: {e.filename or 'the system'}: {e.strerror or e}", file=sys.stderr)
        return 1


def _give_up_output() -> None:
    """Let nothing more be written; the interpreter would fail again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fill_standard_files() -> None:
    """Let no file that is opened later take the number of a closed standard file."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _check_checkout(command: Path) -> None:
    """Refuse to run the code of another checkout than the command's own: environments hold absolute paths.

    Raises
    ------
    ToolError
        The command belongs to a copy of the checkout that this code is in.
    """
    ours = Path(__file__).resolve().parents[1]
    theirs = Path(os.path.abspath(command)).parents[2:3]
    if (ours / "pyproject.toml").is_file() and any(
            (folder / "speculoos" / "cli.py").is_file() and not folder.samefile(ours) for folder in theirs):
        raise ToolError(f"{theirs[0]} is a copy, and its environment runs the code of {ours}: run "
                        f"`scripts/environment.sh demo` there, which mends it")


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        with naming(STANDARD_OUTPUT):
            print(_help(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] == "help":
        return _run([*arguments[1:2], "--help", *arguments[2:]])
    name = arguments[0]
    if name == "--version":
        with naming(STANDARD_OUTPUT):
            print(f"speculoos {_version()}")
        return 0
    if name not in COMMANDS:
        from gen.config.config import guess
        kind = "option" if name.startswith("-") else "command"
        hint = guess(name, COMMANDS) or f", only {', '.join(COMMANDS)}"
        raise UserError(f"there is no {kind} {name!r}{hint}")
    module = importlib.import_module(f"speculoos.commands.{name}")
    summary = COMMANDS[name]
    parser = Parser(prog=f"speculoos {name}", description=f"{summary[0].upper()}{summary[1:]}.",
                    epilog=module.EXAMPLES, allow_abbrev=False,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    module.add_arguments(parser)
    if hasattr(module, "add_arguments_of"):
        module.add_arguments_of(parser, arguments[1:])
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON (- for stdout)")
    try:
        args = parser.parse(arguments[1:])
    except SystemExit as e:     # argparse's own way out after --help
        return int(e.code or 0)
    from speculoos.report import Report
    report = Report(args.json)
    report.data.update(command=name, version=_version())
    code = module.run(args, report)
    report.close()
    return code


def _version() -> str:
    from importlib.metadata import version
    return version("speculoos")


def _help() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:{width}}  {summary}" for name, summary in COMMANDS.items())
    return (f"usage: speculoos COMMAND [options]\n\n"
            f"Generates, verifies and measures RTL for speculative decoding.\n\n"
            f"commands:\n{commands}\n\n`speculoos help COMMAND` explains one; every command takes "
            f"--json FILE.\nA first look: speculoos list")


if __name__ == "__main__":
    sys.exit(main())
