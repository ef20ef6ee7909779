"""The rules of a stream, checked cycle by cycle; numbers as in Amaranth's stream documentation.

1. A transfer happens on each cycle with valid and ready.
2. Valid, once high, stays, and the payload does not change, until the transfer.
3. Valid does not wait for ready; here: it does not depend on ready within the cycle.
4. Ready may do what it likes.

Two more of this project: (X) nothing is undefined, (R) valid is low during reset and in the first cycle
after it.
"""

__all__ = ["RuleViolation", "StreamRules"]


class RuleViolation(AssertionError):
    """A stream broke a protocol rule."""


class StreamRules:
    """Checker of one stream.

    Parameters
    ----------
    name:
        The stream, for messages.
    always_valid:
        Valid is tied high, so rule R says nothing.

    Attributes
    ----------
    transfers: int
        Transfers so far (rule 1).
    """

    def __init__(self, name: str, always_valid: bool = False) -> None:
        self.name = name
        self._always_valid = always_valid
        self.transfers = 0
        self._waiting: int | None = None
        self._was_reset = False

    def step(self, cycle: int, valid: int | None, ready: int | None, payload: int | None,
             reset: bool) -> bool:
        """Check what a rising edge samples.

        Parameters
        ----------
        cycle:
            Number of the edge, for messages.
        valid, ready, payload:
            Values at the edge; None for an undefined one. The payload counts while valid is high.
        reset:
            Whether reset is high at the edge.

        Returns
        -------
        bool
            Whether a transfer happens.

        Raises
        ------
        RuleViolation
            A rule is broken; the message has its number.
        """
        was_reset, self._was_reset = self._was_reset, reset
        waiting, self._waiting = self._waiting, None
        if valid is None or ready is None:
            self._broken(cycle, "X", f"{'valid' if valid is None else 'ready'} is undefined")
        if valid and payload is None:
            self._broken(cycle, "X", "payload has undefined bits while valid is high")
        if was_reset and valid and not self._always_valid:
            self._broken(cycle, "R", "valid is high during or right after reset")
        if waiting is not None and not reset:
            if not valid:
                self._broken(cycle, "2", "valid fell before a transfer")
            if payload != waiting:
                self._broken(cycle, "2",
                             f"payload changed from {waiting:#x} to {payload:#x} before a transfer")
        if reset or not valid:
            return False
        if not ready:
            self._waiting = payload
            return False
        self.transfers += 1
        return True

    def probe(self, cycle: int, before: tuple[int, int], after: tuple[int, int]) -> None:
        """Check rule 3 from (valid, payload) with ready low and high within one cycle.

        Raises
        ------
        RuleViolation
            Valid, or the payload while valid, followed ready.
        """
        if before[0] != after[0]:
            self._broken(cycle, "3", "valid follows ready within the cycle")
        if before[0] and before[1] != after[1]:
            self._broken(cycle, "3", "payload follows ready within the cycle")

    def _broken(self, cycle: int, rule: str, text: str) -> None:
        raise RuleViolation(f"{self.name}, cycle {cycle}: {text} (stream rule {rule})")
