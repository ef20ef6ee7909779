"""Golden model of the memory: words, and the register behind the read port."""

from sim_models.params.memory.ram import RamParams

__all__ = ["Ram"]


class Ram:
    """Memory with one write and one read port.

    Parameters
    ----------
    p:
        Parameters of the memory.

    Attributes
    ----------
    words: list of int or None
        Contents; None where nothing was written yet.
    read_data: int or None
        What the read port shows; None if undefined.
    """

    def __init__(self, p: RamParams) -> None:
        self.p = p
        self.words: list[int | None] = [None] * p.depth
        self.read_data: int | None = None

    def step(self, *, write_en: bool, write_addr: int, write_data: int, read_en: bool, read_addr: int) -> None:
        """One clock edge with these inputs; what is read while it is written is the old word, or undefined."""
        if read_en:
            collides = write_en and write_addr == read_addr
            self.read_data = None if collides and not self.p.read_old else self.words[read_addr]
        if write_en:
            self.words[write_addr] = write_data
