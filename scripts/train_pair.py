"""Train the model pair that ships with the project: a small Llama-style target and a distilled draft.

The script fetches public-domain text (see :mod:`scripts.pair_text`), makes a byte-fallback BPE vocabulary of
512 pieces, trains the target on the text, samples new text from the target at mixed temperatures, and trains
the draft to say what the target says next. It writes ``target.bin`` and ``draft.bin`` (llama2.c v0, float32),
``tokenizer.bin``, and ``prompts.txt`` from chapters that neither model has seen; then it measures the pair.

    python -m scripts.train_pair                 everything: 40 minutes, one thread
    python -m scripts.train_pair --only draft    the draft alone, for the target that is there
    python -m scripts.train_pair --evaluate      measure the files that are there: numpy only, a minute

Training needs PyTorch (``pip install speculoos[train]``) and Debian's ``apt-get`` and ``dpkg-deb``. One seed
decides everything: with the same processor and torch version the files are the same to the last bit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scripts import pair_text
from sim_models.transformer import measure
from sim_models.transformer.checkpoint import CheckpointError, ModelShape
from sim_models.transformer.float_model import FloatModel
from sim_models.transformer.formats.llama2c import load_llama2c, save_llama2c, save_tokenizer
from sim_models.transformer.int8_model import Int8Model
from sim_models.transformer.pair import DATA, load_pair
from sim_models.transformer.tokenizer import BOS, Tokenizer

if TYPE_CHECKING:
    import torch

    from scripts.torch_llama import TorchLlama

ROOT = Path(__file__).resolve().parents[1]
SEED = 20

TARGET = ModelShape(dim=96, hidden_dim=256, n_layers=4, n_heads=6, n_kv_heads=2,
                    vocab_size=512, max_seq_len=256)
DRAFT = ModelShape(dim=32, hidden_dim=96, n_layers=1, n_heads=4, n_kv_heads=2,
                   vocab_size=512, max_seq_len=256)
WINDOW = 256                                # tokens of one example, BOS included
HELD_OUT = 24                               # every 24th chapter gives a prompt and is not trained on
MEASURED = 96                               # greedy tokens behind each prompt when the pair is measured
SAMPLED = 3072                              # windows that the target writes for the draft
TEMPERATURES = (0.0, 0.0, 0.3, 0.6, 1.0)    # greedy twice: that is what speculation meets most


class Corpus:
    """Training and held-out text as tokens.

    Parameters
    ----------
    build: Path
        Folder that the text's package is fetched into.
    """

    def __init__(self, build: Path) -> None:
        chapters = pair_text.fetch_text(build)
        held_out = chapters[::HELD_OUT]
        train = [c for i, c in enumerate(chapters) if i % HELD_OUT]
        self.tokenizer: Tokenizer = pair_text.train_vocabulary(train, TARGET.vocab_size)
        self.prompts = pair_text.held_out_prompts(held_out, 48)
        self.train = pair_text.tokenise(train, self.tokenizer)
        self.held_out = pair_text.tokenise(held_out, self.tokenizer)
        print(f"tokens: {len(self.train)} to train on, {len(self.held_out)} held out", flush=True)

    def windows(self, stream: pair_text.Stream, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """``count`` examples that begin with BOS at random sentences: [count, WINDOW + 1] tokens."""
        starts = pair_text.sentence_starts(stream, self.tokenizer, WINDOW)
        chosen = rng.choice(starts, count)
        rows = stream[chosen[:, None] + np.arange(WINDOW)].astype(np.int64)
        return np.concatenate((np.full((count, 1), BOS), rows), 1)


def optimise(model: TorchLlama, batches: Iterator[torch.Tensor], steps: int, rate: float, what: str) -> None:
    """Minimise the losses that ``batches`` yields: AdamW, warm-up, cosine to zero, clipped gradients."""
    import torch

    matrices = [p for n, p in model.named_parameters() if "rms" not in n]
    norms = [p for n, p in model.named_parameters() if "rms" in n]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": norms, "weight_decay": 0}]
    optimiser = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95))
    warm_up, begun, mean = steps // 40 + 1, time.monotonic(), 0.0
    for step in range(steps):
        progress = step / steps
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / warm_up) * 0.5 * (1 + np.cos(np.pi * progress))
        loss = next(batches)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        mean += (loss.item() - mean) / min(step + 1, 100)
        if (step + 1) % 100 == 0 or step + 1 == steps:
            spent = time.monotonic() - begun
            print(f"{what}: step {step + 1}/{steps}, loss {mean:.3f}, {spent:.0f} s, "
                  f"{spent / (step + 1) * (steps - step - 1):.0f} s left", flush=True)


def train_target(corpus: Corpus, steps: int) -> TorchLlama:
    """Next-token prediction on the text."""
    import torch
    from torch.nn.functional import cross_entropy

    from scripts.torch_llama import TorchLlama

    model = TorchLlama(TARGET)
    rng = np.random.default_rng(SEED)

    def loss(rows: NDArray[np.int64]) -> torch.Tensor:
        tokens = torch.from_numpy(rows)
        return cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    def losses() -> Iterator[torch.Tensor]:
        while True:
            yield loss(corpus.windows(corpus.train, rng, 16))

    optimise(model, losses(), steps, 3e-3, "target")
    with torch.no_grad():
        unseen = np.mean([loss(corpus.windows(corpus.held_out, rng, 16)).item() for _ in range(16)])
    print(f"target: loss on held-out text {unseen:.3f} nats a token", flush=True)
    return model


def sample(model: TorchLlama, corpus: Corpus, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Text that the target continues from real openings, and what the draft should say at every position.

    Half of what it should say is the target's distribution, half its first choice. The first choice is what
    greedy verification accepts, and makes the draft's probability of a token an estimate of the chance that
    it is accepted, which is what a draft controller multiplies up.

    Returns
    -------
    tokens: int64 [count, WINDOW]
    wanted: float16 [count, WINDOW, vocabulary]
        Probabilities of the next token.
    """
    import torch

    def wish(logits: torch.Tensor) -> torch.Tensor:
        half = torch.softmax(logits, -1) / 2
        return half.scatter_add_(-1, logits.argmax(-1, keepdim=True), torch.full_like(half[..., :1], 0.5)).half()

    rng = np.random.default_rng(SEED + 1)
    batch = 256
    temperature = torch.tensor(np.resize(TEMPERATURES, batch), dtype=torch.float32)[:, None]
    tokens = torch.empty(count, WINDOW, dtype=torch.int64)
    wanted = torch.empty(count, WINDOW, model.shape.vocab_size, dtype=torch.float16)
    for at in range(0, count, batch):
        rows, wishes = tokens[at:at + batch], wanted[at:at + batch]
        given = int(rng.integers(4, 48))
        rows[:, :given] = torch.from_numpy(corpus.windows(corpus.train, rng, batch)[:len(rows), :given])
        heat, cache = temperature[:len(rows)], []
        with torch.no_grad():
            logits = model(rows[:, :given], cache)
            wishes[:, :given] = wish(logits)
            for i in range(given, WINDOW):
                last = logits[:, -1]
                drawn = torch.multinomial(torch.softmax(last / heat.clamp(min=0.1), 1), 1)
                rows[:, i] = torch.where(heat > 0, drawn, last.argmax(1, keepdim=True))[:, 0]
                logits = model(rows[:, i:i + 1], cache)
                wishes[:, i:i + 1] = wish(logits)
        print(f"sampling: {at + len(rows)}/{count} windows", flush=True)
    return tokens, wanted


def train_draft(target: TorchLlama, corpus: Corpus, steps: int, windows: int) -> TorchLlama:
    """Distil: cross-entropy with what :func:`sample` says the draft should say."""
    import torch
    from torch.nn.functional import cross_entropy

    from scripts.torch_llama import TorchLlama

    tokens, wanted = sample(target, corpus, windows)
    model = TorchLlama(DRAFT)
    rng = np.random.default_rng(SEED + 2)

    def losses() -> Iterator[torch.Tensor]:
        while True:
            rows = torch.from_numpy(rng.integers(0, len(tokens), 16))
            yield cross_entropy(model(tokens[rows]).flatten(0, 1), wanted[rows].float().flatten(0, 1))

    optimise(model, losses(), steps, 4e-3, "draft")
    return model


def train(args: argparse.Namespace) -> None:
    """Train what ``args`` asks for and write it to ``args.output``."""
    import torch

    from scripts.torch_llama import TorchLlama

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    corpus = Corpus(args.build)
    args.output.mkdir(parents=True, exist_ok=True)
    if args.only == "draft":
        target = TorchLlama.load(load_llama2c(args.output / "target.bin"))
    else:
        target = train_target(corpus, args.target_steps)
        save_tokenizer(args.output / "tokenizer.bin", corpus.tokenizer)
        (args.output / "prompts.txt").write_text("".join(p + "\n" for p in corpus.prompts))
        save_llama2c(args.output / "target.bin", target.checkpoint())
    torch.manual_seed(SEED + 3)
    draft = train_draft(target, corpus, args.draft_steps, args.windows)
    save_llama2c(args.output / "draft.bin", draft.checkpoint())
    print(f"wrote {', '.join(sorted(p.name for p in args.output.iterdir()))} to {args.output}", flush=True)


def evaluate(folder: Path) -> None:
    """Print how well the draft in ``folder`` foretells the target, in float32 and in int8."""
    pair = load_pair(folder)
    prompts = [pair.tokenizer.encode(p) for p in pair.prompts]
    texts = {}
    for name, kind in (("float32", FloatModel), ("int8", Int8Model)):
        target, draft = kind(pair.target), kind(pair.draft)
        texts[name] = measure.greedy_text(target, prompts, MEASURED)
        got = measure.acceptance(draft, texts[name])
        print(f"{name}: first token accepted {got.first_token:.3f} of {got.tokens}, mean accepted length "
              f"{got.accepted_length:.2f} at gamma = {got.gamma} over {got.rounds} rounds", flush=True)
    share, count = measure.agreement(Int8Model(pair.target), texts["float32"])
    print(f"target: int8 chooses float32's token {share:.4f} of {count} times, teacher-forced")
    print(f"target: {pair.target.shape.parameters} weights, draft: {pair.draft.shape.parameters} weights")
    for _, tokens in texts["int8"][:4]:
        print("int8: " + pair.tokenizer.decode(tokens).decode(errors="replace").replace("\n", " / "))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    option = parser.add_argument
    option("--evaluate", action="store_true", help="measure the files that are there, train nothing")
    option("--only", choices=["draft"], help="train the draft alone, for the target that is there")
    option("--output", type=Path, default=DATA, help="folder of the files (default: %(default)s)")
    option("--build", type=Path, default=ROOT / "build" / "pair", help="folder of what is fetched")
    option("--target-steps", type=int, default=4000, help="(default: %(default)s)")
    option("--draft-steps", type=int, default=5000, help="(default: %(default)s)")
    option("--windows", type=int, default=SAMPLED, help="sampled windows (default: %(default)s)")
    args = parser.parse_args()
    try:
        if not args.evaluate:
            train(args)
        evaluate(args.output)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        sys.exit("error: training needs PyTorch, which is not installed: pip install 'speculoos[train]'")
    except (CheckpointError, pair_text.TextError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
