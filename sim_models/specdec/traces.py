"""What draft and target would say at every place that greedy speculation can come to.

The target's tokens do not depend on the schedule. The draft's depend on where it went wrong: behind the right
tokens it says one thing, behind a wrong token of its own another, until that one is corrected. A trace holds both
for every position, so that any draft length, pool and timing can be replayed without a transformer::

    target   t0 t1 t2 t3 ...          prompt, then the target's own tokens
    draft    t0 t1 x2 t3 ...          the draft's choice behind the right tokens, with its probability
    branch 2       x2 y3 y4 ...       what it would say behind x2, y3, ...
"""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_models.specdec.draws import KeyedDraws
from sim_models.specdec.fixed import ONE, quantise
from sim_models.specdec.models import LlamaModel, Model, Session, check_batch
from sim_models.specdec.rules import Greedy, decode
from sim_models.transformer.decoding import End, check_room, end_tokens
from sim_models.transformer.int8_model import Int8Model
from sim_models.transformer.pair import Pair, load_pair

__all__ = ["DraftToken", "RequestTrace", "Trace", "TraceError", "load_trace", "record", "save_trace",
           "shipped_models"]

DraftToken = tuple[int, int]
"""A token and its probability in UQ1.15."""

_FORMAT = "speculoos trace 1"


class TraceError(ValueError):
    """A trace that cannot be read, or does not reach as far as was asked."""


@dataclasses.dataclass(frozen=True)
class RequestTrace:
    """One request.

    Members
    -------
    prompt: tuple of int
    target: tuple of int
        The target's greedy continuation.
    draft: tuple of DraftToken
        The draft's choice at each position of ``target``, behind the right tokens.
    branches: dict of int to tuple of DraftToken
        Where that choice is wrong: what the draft says behind it and behind what it says.
    """

    prompt: tuple[int, ...]
    target: tuple[int, ...]
    draft: tuple[DraftToken, ...]
    branches: dict[int, tuple[DraftToken, ...]]

    def draft_token(self, index: int, wrong: int | None = None) -> DraftToken:
        """What the draft says at ``target[index]``.

        Parameters
        ----------
        index: int
            Tokens since the prompt.
        wrong: int or None
            Index of the first token that is not the target's; those between were drafted.

        Raises
        ------
        TraceError
            The trace ends before.
        """
        tokens = self.draft if wrong is None else self.branches.get(wrong, ())
        at = index if wrong is None else index - wrong - 1
        if not 0 <= at < len(tokens):
            raise TraceError(f"the trace has {len(tokens)} draft tokens "
                             f"{'' if wrong is None else f'behind the wrong token {wrong} '}and not number {at}")
        return tokens[at]

    def verdict(self, index: int, drafts: Sequence[int], waiting: int | None) -> tuple[int, int, bool]:
        """The fields of a :class:`rules.Verdict` on tokens drafted from ``target[index]`` on.

        Tokens behind the end of the trace are 0, and nothing is accepted there.
        """
        right = self.target[index:index + len(drafts) + 1]
        accepted = 0
        while accepted < min(len(drafts), len(right)) and drafts[accepted] == right[accepted]:
            accepted += 1
        token = right[accepted] if accepted < len(right) else 0
        return accepted, token, accepted == len(drafts) < len(right) and waiting == token


@dataclasses.dataclass(frozen=True)
class Trace:
    """A batch of requests.

    Members
    -------
    vocab_size: int
    end: frozenset of int
        The tokens that end a request.
    depth: int
        Tokens that a branch holds behind its wrong one, where the request's end leaves room for them.
    requests: tuple of RequestTrace
    """

    vocab_size: int
    end: frozenset[int]
    depth: int
    requests: tuple[RequestTrace, ...]

    def models(self) -> tuple[Model, Model]:
        """Draft and target that say what was recorded; they know a request by its number."""
        return _Replay(self, draft=True), _Replay(self, draft=False)

    @property
    def prompts(self) -> list[list[int]]:
        return [list(r.prompt) for r in self.requests]

    @property
    def limits(self) -> list[int]:
        """Tokens recorded of each request."""
        return [len(r.target) for r in self.requests]


def shipped_models(pair: Pair | None = None) -> tuple[LlamaModel, LlamaModel, list[list[int]]]:
    """Draft, target and prompts (as tokens) of the pair that ships with the project, or of another."""
    pair = pair or load_pair()
    return (LlamaModel(Int8Model(pair.draft)), LlamaModel(Int8Model(pair.target)),
            [pair.tokenizer.encode(p) for p in pair.prompts])


def record(draft: Model, target: Model, prompts: Sequence[list[int]], limit: int, *, depth: int = 16,
           end: End = None) -> Trace:
    """Record a batch: up to ``limit`` tokens of each request, branches of ``depth`` tokens.

    Raises
    ------
    ValueError
        What :func:`models.check_batch` refuses, an end token that is none of the vocabulary, or a draft whose
        context ends before the texts do.
    """
    check_batch(draft, target, prompts, [limit] * len(prompts))
    for prompt in prompts:
        check_room(len(prompt), limit, draft.positions, "draft")
    ends = end_tokens(end, target.vocab_size)
    return Trace(target.vocab_size, ends, depth, tuple(
        _record(draft, target, i, prompt, limit, depth, ends) for i, prompt in enumerate(prompts)))


def _record(draft: Model, target: Model, request: int, prompt: list[int], limit: int, depth: int,
            end: frozenset[int]) -> RequestTrace:
    tokens = decode(Greedy(), target, prompt, limit, KeyedDraws(), request=request, end=end)
    session, rows = draft.open(request), prompt
    choices, branches = [], {}
    for index, token in enumerate(tokens):
        choices.append(_choice(session, rows))
        rows = [token]
        if choices[-1][0] != token:
            length, branch = session.length, [choices[-1]]
            while len(branch) <= min(depth, len(tokens) - index - 1):
                branch.append(_choice(session, [branch[-1][0]]))
            branches[index] = tuple(branch[1:])
            session.roll_back(length)
    return RequestTrace(tuple(prompt), tuple(tokens), tuple(choices), branches)


def _choice(session: Session, rows: list[int]) -> DraftToken:
    q = session.extend(rows)[-1]
    token = int(q.argmax())
    return token, quantise(float(q[token]))


@dataclasses.dataclass(frozen=True)
class _Replay:
    """A model of which only the greedy choices and their probabilities are right."""

    trace: Trace
    draft: bool

    @property
    def vocab_size(self) -> int:
        return self.trace.vocab_size

    @property
    def positions(self) -> int | None:
        return None

    def open(self, request: int = 0) -> Session:
        return _ReplaySession(self, self.trace.requests[request])


class _ReplaySession:
    def __init__(self, model: _Replay, request: RequestTrace) -> None:
        self._model, self._request = model, request
        self._tokens: list[int] = []

    @property
    def length(self) -> int:
        return len(self._tokens)

    def extend(self, tokens: list[int]) -> NDArray[np.float64]:
        rows = []
        for token in tokens:
            self._tokens.append(token)
            rows.append(self._row())
        return np.array(rows)

    def roll_back(self, length: int) -> None:
        del self._tokens[length:]

    def _row(self) -> NDArray[np.float64]:
        """The choice with its probability; the rest is spread over the other tokens."""
        r, size = self._request, self._model.vocab_size
        token, p = 0, ONE
        index = len(self._tokens) - len(r.prompt)
        if 0 <= index < len(r.target):
            wrong = next((i for i, (a, b) in enumerate(zip(self._tokens[len(r.prompt):], r.target, strict=False))
                          if a != b), None)
            token, p = r.draft_token(index, wrong) if self._model.draft else (r.target[index], ONE)
        row = np.full(size, (1 - p / ONE) / (size - 1))
        row[token] = p / ONE
        return row


def save_trace(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a trace as JSON, one request a line."""
    head = {"format": _FORMAT, "vocab_size": trace.vocab_size, "end": sorted(trace.end),
            "depth": trace.depth}
    lines = ",\n".join(json.dumps(dataclasses.asdict(r), separators=(",", ":")) for r in trace.requests)
    path = Path(path)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(f'{json.dumps(head)[:-1]}, "requests": [\n{lines}\n]}}\n', encoding="utf-8")
        part.replace(path)      # a whole file or none
    finally:
        part.unlink(missing_ok=True)


def load_trace(path: str | os.PathLike[str]) -> Trace:
    """Read what :func:`save_trace` wrote.

    Raises
    ------
    TraceError
        The file cannot be read or is no such trace.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        if data["format"] != _FORMAT:
            raise TraceError(f"the format must be {_FORMAT!r}, not {data['format']!r}")
        size, depth = data["vocab_size"], data["depth"]
        for name, value, least in (("vocab_size", size, 2), ("depth", depth, 0)):
            if type(value) is not int or value < least:
                raise TraceError(f"{name} must be an integer of at least {least}, not {value!r}")
        return Trace(size, end_tokens(data["end"], size), depth, tuple(
            _request(request, f"request {i}", size) for i, request in enumerate(data["requests"])))
    except TraceError as error:
        raise TraceError(f"{os.fspath(path)}: {error}") from None
    except OSError as error:
        raise TraceError(f"{os.fspath(path)}: cannot be read: {error.strerror}") from None
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise TraceError(f"{os.fspath(path)}: not a trace: {type(error).__name__}: {error}") from None


def _request(data: dict[str, Any], what: str, vocab_size: int) -> RequestTrace:
    """A request, its lengths and tokens checked."""
    def tokens(name: str, items: list[int]) -> tuple[int, ...]:
        for token in items:
            if type(token) is not int or not 0 <= token < vocab_size:
                raise TraceError(f"{what}: a token of {name} must be from 0 to {vocab_size - 1}, not {token!r}")
        return tuple(items)

    def pairs(name: str, items: list[list[int]]) -> tuple[DraftToken, ...]:
        for _, p in items:
            if type(p) is not int or not 0 <= p <= ONE:
                raise TraceError(f"{what}: a probability of {name} must be from 0 to {ONE}, not {p!r}")
        return tuple(zip(tokens(name, [token for token, _ in items]), (p for _, p in items), strict=True))

    request = RequestTrace(tokens("prompt", data["prompt"]), tokens("target", data["target"]),
                           pairs("draft", data["draft"]),
                           {int(i): pairs(f"branch {i}", branch) for i, branch in data["branches"].items()})
    if not request.prompt:
        raise TraceError(f"{what}: a prompt of at least 1 token was wanted, it has none")
    if len(request.draft) != len(request.target):
        raise TraceError(f"{what}: a draft token for each of {len(request.target)} tokens was wanted, "
                         f"not {len(request.draft)}")
    for index in request.branches:
        if not 0 <= index < len(request.target):
            raise TraceError(f"{what}: a branch must stand at one of {len(request.target)} tokens, not at {index}")
    return request
