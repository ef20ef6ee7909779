"""How the Shared Pool's area grows with its entries and with the number of requests, on UltraScale+.

``python -m scripts.pool_scaling --json docs/shared_pool.json --plot docs/shared_pool.png`` synthesises both series
(about five minutes) and draws them; with ``--from FILE`` it draws figures that were measured before.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from gen.flows.synth import synthesize
from rtl.manager.pools.shared_pool import SharedPool
from sim_models.params.manager.pools.shared_pool import SharedPoolParams
from speculoos.plots import check_target, save
from speculoos.report import Report, write_atomic

ENTRIES = (16, 32, 64, 128, 256, 512, 1024)
REQUEST_WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8)
#: public CAMs of 512 entries with keys of 16 bits, same flow: LUT with shift registers, FF, cycles of an insertion
PUBLIC = {"verilog-cam, SRL": (3754, 536, 33), "bsg_cam": (6896, 8704, 1)}
GOAL = {"lut": 3750, "ff": 1700}


def measure(report: Report) -> list[dict[str, Any]]:
    """Synthesise both series; a row a size."""
    default = SharedPoolParams()
    sizes = [default.replace(entries=n) for n in ENTRIES]
    sizes += [default.replace(request_width=w) for w in REQUEST_WIDTHS if w != default.request_width]
    rows = []
    for p in sizes:
        with report.status(f"synthesising {p.entries} entries, {p.requests} requests") as tell:
            figures = synthesize(SharedPool(p), "xcup", progress=tell)
        rows.append({"entries": p.entries, "requests": p.requests, "entry_bits": p.entry_bits,
                     **{key: figures[key] for key in ("lut", "lutram", "ff", "bram", "dsp")}})
        report.line(", ".join(f"{key} {value}" for key, value in rows[-1].items()))
    return rows


def draw(rows: list[dict[str, Any]], path: Path, report: Report) -> None:
    """Area over entries and over requests, with the goal and public CAMs."""
    from matplotlib.figure import Figure
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    default = SharedPoolParams()
    for axes, over, fixed, value in zip(figure.subplots(1, 2), ("entries", "requests"), ("requests", "entries"),
                                        (default.requests, default.entries), strict=True):
        series = sorted((r for r in rows if r[fixed] == value), key=lambda r: r[over])
        for key, label, marker in (("lut", "LUT", "o"), ("lutram", "LUT as memory", "s"), ("ff", "flip-flops", "^")):
            axes.plot([r[over] for r in series], [r[key] for r in series], marker=marker, label=label)
        axes.set_xscale("log", base=2)
        axes.set_xticks([r[over] for r in series], [str(r[over]) for r in series])
        axes.set_xlabel(over)
        axes.set_title(f"{value} {fixed}")
        if over == "entries":
            for (name, (lut, _, cycles)), mark in zip(PUBLIC.items(), "x+", strict=True):
                axes.plot([512], [lut], mark, color="#666666", label=f"{name}: LUT, insertion in {cycles}")
        axes.plot([512 if over == "entries" else default.requests], [GOAL["lut"]], "_", color="#d55e00",
                  markersize=14, label="goal, LUT")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
    save(figure, path, report)


def main() -> None:
    """Measure or read, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--plot", type=Path, help="file for the plot")
    parser.add_argument("--from", dest="source", type=Path, help="figures measured before")
    args = parser.parse_args()
    if args.plot:
        check_target(args.plot)
    report = Report()
    rows = json.loads(args.source.read_text()) if args.source else measure(report)
    if args.json:
        write_atomic(args.json, (json.dumps(rows, indent=1) + "\n").encode())
    if args.plot:
        draw(rows, args.plot, report)


if __name__ == "__main__":
    main()
