"""The models of the demonstration: read, continued greedily with and without a draft, their operands recorded."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from gen.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from sim_models.transformer.checkpoint import Checkpoint
    from sim_models.transformer.int8_model import Int8Model
    from sim_models.transformer.tokenizer import Tokenizer

__all__ = ["GAMMA", "Models", "Pass", "Recorder", "Round", "Spoken", "load_models", "speak"]

#: drafts a round; verification has one row more (SPECTRA's setting)
GAMMA = 8
#: a dot product of int8 numbers that is shorter cannot overflow 32 bits
LARGEST_K = 1 << 17
#: what is said to a model that comes without prompts
PROMPT = "Once upon a time"


@dataclasses.dataclass(frozen=True)
class Models:
    """Checkpoints, the tokenizer of both, and the prompt; the draft may be missing."""

    target: "Checkpoint"
    draft: "Checkpoint | None"
    tokenizer: "Tokenizer"
    prompt: str


def load_models(model: Path | None, draft: Path | None, tokenizer: Path | None, prompt: str | None,
                seed: int) -> Models:
    """The pair that comes with the project, or what files hold.

    Parameters
    ----------
    model, draft:
        llama2.c or GGUF files that replace the shipped target (its draft then falls away) and the shipped draft.
    tokenizer:
        ``tokenizer.bin`` or a GGUF file; not needed where a GGUF target brings its own, or the shipped one fits.
    prompt:
        None takes one of the shipped prompts, by ``seed``.

    Raises
    ------
    UserError
        A file is missing or wrong, or the parts do not fit each other.
    """
    from sim_models.transformer.checkpoint import CheckpointError
    from sim_models.transformer.formats.model_file import open_model, open_tokenizer
    from sim_models.transformer.pair import load_pair
    try:
        file = None if model is None else open_model(model)
        if file is None:
            pair = load_pair()
            target, drafter, own, prompts = pair.target, pair.draft, pair.tokenizer, pair.prompts
        else:
            # the tokenizer first: it is read sooner
            own = file.tokenizer() if file.has_tokenizer and tokenizer is None else None
            target, drafter, prompts = file.checkpoint(), None, [PROMPT]
        if draft is not None:
            drafter = open_model(draft).checkpoint()
        vocabulary = target.shape.vocab_size
        if drafter is not None and drafter.shape.vocab_size != vocabulary:
            raise UserError(f"the draft must have the target's vocabulary of {vocabulary} tokens, "
                            f"not {drafter.shape.vocab_size}")
        if tokenizer is not None:
            own = open_tokenizer(tokenizer, vocabulary)
    except CheckpointError as e:
        raise UserError(str(e)) from e
    for checkpoint in (target, drafter):
        if checkpoint is not None and max(checkpoint.shape.dim, checkpoint.shape.hidden_dim) >= LARGEST_K:
            raise UserError(f"dim and hidden_dim must be below {LARGEST_K} for 32-bit sums")
    if own is None:
        raise UserError(f"{model} brings no tokenizer: name its tokenizer.bin with --tokenizer")
    return Models(target, drafter, own, prompts[seed % len(prompts)] if prompt is None else prompt)


@dataclasses.dataclass(frozen=True)
class Pass:
    """Operands of one forward pass.

    Members
    -------
    model, phase: str
        ``target`` or ``draft``; ``prompt``, ``verify`` or ``decode``.
    m: int
        Rows.
    gemms: list of (name, int8 [M, K], int8 [K, N])
    """

    model: str
    phase: str
    m: int
    gemms: "list[tuple[str, np.ndarray, np.ndarray]]"


class Recorder:
    """A matmul hook that computes in numpy and keeps the operands while it is told to."""

    def __init__(self) -> None:
        self.gemms: list[tuple[str, np.ndarray, np.ndarray]] | None = None

    def __call__(self, x: "np.ndarray", w: "np.ndarray", name: str) -> "np.ndarray":
        from sim_models.numerics.rows import int_matmul
        if self.gemms is not None:
            self.gemms.append((name, x, w))
        return int_matmul(x, w)

    def start(self) -> None:
        """Keep operands from here on."""
        self.gemms = []

    def stop(self, model: str, phase: str) -> Pass:
        """What was kept since :meth:`start`."""
        gemms, self.gemms = self.gemms or [], None
        return Pass(model, phase, len(gemms[0][1]), gemms)


@dataclasses.dataclass(frozen=True)
class Round:
    """One round of speculation: tokens that the draft proposed, how many were right, and the target's own token."""

    drafted: list[int]
    accepted: int
    own: int


@dataclasses.dataclass(frozen=True)
class Spoken:
    """What the models said to a prompt.

    Members
    -------
    prompt, tokens: list of int
        Tokens of the prompt and of the target's greedy continuation.
    rounds: list of Round
        The same continuation with the draft's help; None without a draft.
    passes: list of Pass
        The prompt, a verification and a decoding step of the target; the prompt and a step of the draft.
    """

    prompt: list[int]
    tokens: list[int]
    rounds: list[Round] | None
    passes: list[Pass]

    @property
    def speculated(self) -> list[int]:
        """The continuation that the rounds make, as long as the other one."""
        made = [t for r in self.rounds or [] for t in (*r.drafted[:r.accepted], r.own)]
        return made[:len(self.tokens)]


def speak(models: Models, count: int) -> Spoken:
    """Continue the prompt greedily by ``count`` tokens, alone and with the draft, in integers.

    Raises
    ------
    UserError
        The prompt has no tokens for some of its bytes, or leaves no room for a verification, or the weights lead to
        numbers that float32 cannot hold.
    """
    from sim_models.transformer.checkpoint import CheckpointError
    from sim_models.transformer.decoding import generate
    from sim_models.transformer.int8_model import Int8Model
    try:
        prompt = models.tokenizer.encode(models.prompt)
    except CheckpointError as e:
        raise UserError(f"the prompt cannot be split into tokens: {e}") from e
    if not prompt:
        raise UserError("the prompt has no tokens")
    for name, checkpoint in (("target", models.target), ("draft", models.draft)):
        positions = len(prompt) + GAMMA + 1 if checkpoint is None else checkpoint.shape.max_seq_len
        if positions < len(prompt) + GAMMA + 1:
            raise UserError(f"the prompt has {len(prompt)} tokens, the {name} has {positions} positions: at most "
                            f"{max(positions - GAMMA - 1, 0)} leave room for {GAMMA} drafts")
    count = min(count, models.target.shape.max_seq_len - len(prompt) + 1)
    used = len(prompt) + max(count, GAMMA + 1)
    recorder = Recorder()
    target = Int8Model(models.target.shortened(used), recorder)
    draft = None if models.draft is None else Int8Model(models.draft.shortened(used), recorder)
    try:
        tokens = generate(target, prompt, count)
        rounds = None if draft is None else _speculate(target, draft, prompt, count)
        drafted = generate(draft or target, prompt, GAMMA)
        passes = _record(target, "target", recorder, prompt, tokens, drafted)
        if draft is not None:
            passes += _record(draft, "draft", recorder, prompt, tokens, [])
    except CheckpointError as e:
        raise UserError(f"the models cannot be computed: {e}") from e
    return Spoken(prompt, tokens, rounds, passes)


def _speculate(target: "Int8Model", draft: "Int8Model", prompt: list[int], count: int) -> list[Round]:
    """Rounds of greedy speculation until they have made ``count`` tokens.

    The last token is the target's in any case, and none is drafted beyond the draft's context.
    """
    from sim_models.transformer.decoding import first_choices
    cache, drafts = target.new_cache(), draft.new_cache()
    tokens = list(prompt)
    if len(prompt) > 1:
        target.forward(prompt[:-1], cache)
    rounds = []
    while len(tokens) < len(prompt) + count:
        proposed: list[int] = []
        drafted = min(len(prompt) + count - 1, draft.shape.max_seq_len + 1) - len(tokens)
        while len(proposed) < min(GAMMA, drafted):
            seen = [*tokens, *proposed]
            proposed.append(int(first_choices(draft.forward(seen[drafts.length:], drafts)[-1])))
        choices = first_choices(target.forward([tokens[-1], *proposed], cache)).tolist()
        accepted = next((i for i, t in enumerate(proposed) if t != choices[i]), len(proposed))
        rounds.append(Round(proposed, accepted, choices[accepted]))
        tokens += [*proposed[:accepted], choices[accepted]]
        # Both caches keep what is right: everything before the newest token, which has not been fed yet.
        for kept in (cache, drafts):
            kept.roll_back(min(kept.length, len(tokens) - 1))
    return rounds


def _record(model: "Int8Model", name: str, recorder: Recorder, prompt: list[int], tokens: list[int],
            drafted: list[int]) -> list[Pass]:
    """Operands of the prompt's pass, of a verification (a draft has none), and of a decoding step."""
    cache = model.new_cache()
    recorder.start()
    model.forward(prompt, cache)
    passes = [recorder.stop(name, "prompt")]
    if drafted:
        # After the prompt, the first of these is certain and the others are to be verified.
        cache.roll_back(len(prompt) - 1)
        recorder.start()
        model.forward([prompt[-1], *drafted], cache)
        passes.append(recorder.stop(name, "verify"))
        cache.roll_back(len(prompt))
    recorder.start()
    model.forward(tokens[:1], cache)
    return [*passes, recorder.stop(name, "decode")]
