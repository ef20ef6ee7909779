"""The exact law of what a simulation emits, by following every random decision.

Simulations are stopped between events; those in the same state are one, with the sum of their probabilities.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sim_models.specdec.draws import Key
from sim_models.specdec.models import TableModel
from sim_models.specdec.simulation import Simulation
from sim_models.transformer.decoding import End, end_tokens

__all__ = ["Law", "Script", "output_law", "target_law", "total_variation"]

Law = dict[tuple[tuple[int, ...], ...], float]
"""Probability of each outcome: the tokens of every request."""


_State = tuple[tuple[Any, ...], frozenset[tuple[Key, tuple[float, float]]]]


class _BranchError(Exception):
    """A decision beyond the script's end."""

    def __init__(self, options: list[int]) -> None:
        super().__init__(options)
        self.options = options


class Script:
    """Draws from uniforms of which no more is known than what earlier decisions have told.

    A uniform that is asked for again, under the same name, still lies where its first use left it.

    Members
    -------
    choices: list of int
        Outcomes of the decisions that are open (those of one possible outcome are not).
    weight: float
        Probability of the outcomes that were asked for.
    known: dict of Key to (low, high)
        Where a uniform lies, once it was used.
    """

    def __init__(self) -> None:
        self.restart([], {})

    def restart(self, choices: list[int], known: dict[Key, tuple[float, float]]) -> None:
        """Begin another script."""
        self.choices, self.weight, self._at, self.known = choices, 1.0, 0, dict(known)

    def pick(self, weights: Sequence[float], key: Key) -> int:
        """The script's next choice."""
        low, high = self.known.get(key, (0.0, 1.0))
        bounds = [0.0, *itertools.accumulate(weights)]
        bounds[-1] = max(bounds[-1], 1.0)
        parts = [(max(a, low), min(b, high)) for a, b in itertools.pairwise(bounds)]
        options = [i for i, (a, b) in enumerate(parts) if a < b and weights[i] > 0]
        choice = options[0] if len(options) == 1 else self._choose(options)
        self.known[key] = parts[choice]
        self.weight *= (parts[choice][1] - parts[choice][0]) / (high - low)
        return choice

    def accept(self, probability: float, key: Key) -> bool:
        """The script's next choice, 0 or 1."""
        return self.pick((probability, 1 - probability), key) == 0

    def _choose(self, options: list[int]) -> int:
        if self._at == len(self.choices):
            raise _BranchError(options)
        self._at += 1
        return self.choices[self._at - 1]


def output_law(make: Callable[[Script], Simulation]) -> Law:
    """Probabilities of all outcomes.

    Parameters
    ----------
    make:
        Builds the simulation with these draws.
    """
    script = Script()
    simulation = make(script)
    law = Law()
    states: dict[_State, float] = {(simulation.state(), frozenset()): 1.0}
    while states:
        following: dict[_State, float] = {}
        for state, probability in states.items():
            for weight in _outcomes(simulation, script, state):
                if simulation.done:
                    outcome = tuple(map(tuple, simulation.outputs))
                    law[outcome] = law.get(outcome, 0.0) + probability * weight
                else:
                    key = simulation.state(), _still_of_use(simulation, script)
                    following[key] = following.get(key, 0.0) + probability * weight
        states = following
    return law


def _outcomes(simulation: Simulation, script: Script, state: _State) -> Iterator[float]:
    """Put the simulation into each state that can follow, and tell its probability."""
    scripts: list[list[int]] = [[]]
    while scripts:
        script.restart(scripts.pop(), dict(state[1]))
        simulation.load_state(state[0])
        try:
            simulation.step()
        except _BranchError as branch:
            scripts += [[*script.choices, option] for option in branch.options]
        else:
            yield script.weight


def _still_of_use(simulation: Simulation, script: Script) -> frozenset[tuple[Key, tuple[float, float]]]:
    """What is known of uniforms that may be asked for again: those of tokens that are not emitted."""
    requests = simulation.scheduler.requests
    return frozenset((k, v) for k, v in script.known.items() if k.position >= requests[k.request].base
                     and k.branch in (0, requests[k.request].branch))


def target_law(target: TableModel, prompts: list[list[int]], limits: list[int], end: End = None) -> Law:
    """The law of decoding each request with the target alone."""
    ends = end_tokens(end, target.vocab_size)
    law: Law = {(): 1.0}
    for prompt, limit in zip(prompts, limits, strict=True):
        alone = {(): 1.0}
        for _ in range(limit):
            longer: dict[tuple[int, ...], float] = {}
            for tokens, probability in alone.items():
                if tokens and tokens[-1] in ends:
                    longer[tokens] = probability
                    continue
                for token, weight in enumerate(target.table[tokens[-1] if tokens else prompt[-1]]):
                    if weight > 0:
                        longer[*tokens, token] = probability * float(weight)
            alone = longer
        law = {(*all_tokens, tokens): a * b for all_tokens, a in law.items() for tokens, b in alone.items()}
    return law


def total_variation(a: Law, b: Law) -> float:
    """Half the sum of absolute differences."""
    return sum(abs(a.get(k, 0.0) - b.get(k, 0.0)) for k in a.keys() | b.keys()) / 2
