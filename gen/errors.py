"""What a user may be told: one sentence, an exit code, never a traceback."""

__all__ = ["EmitError", "ToolError", "UserError"]


class UserError(Exception):
    """Something the user can put right.

    Parameters
    ----------
    message: str
        One sentence: what was wanted and what came.
    exit_code: int, optional
        Exit code of the command line: 2 = bad input, 1 = the work failed (default: the class's).
    """

    exit_code = 2

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        if exit_code is not None:
            self.exit_code = exit_code


class EmitError(UserError):
    """A unit cannot be written as Verilog."""


class ToolError(UserError):
    """An outside tool is missing, failed, or took too long."""

    exit_code = 1
