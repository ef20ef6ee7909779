"""The Manager between any engines: a proof, a bounded check, and broken Managers that are noticed.

H has 3 bits here, and settings are fixed for each check; the text of the hardware is the same.
"""

import pytest

from rtl.manager import draft_controller
from rtl.manager import layouts as manager_layouts
from rtl.manager.events import layouts as event_layouts
from rtl.manager.pools import layouts as pool_layouts
from rtl.manager.pools import shared_pool
from sim_models.golden.manager.draft_controller import FIXED
from sim_models.golden.manager.manager import Switches
from sim_models.params.manager.manager import ManagerParams
from sim_models.params.manager.pools import pool as pool_parameters
from sim_models.params.manager.pools import shared_pool as shared_parameters
from tb.manager.manager_engines import settings_value
from tests.formal_tools import Bounded, Proven, Violated, check
from tests.rtl.manager.manager_specification import ManagerSpecification, changed_manager

PARAMS = ManagerParams(request_width=1, lane_width=0, entries=1, eager_entries=1, draft_width=1, token_width=1,
                       position_width=2)
#: cycles from reset on: a request and its draft
FRAMES = 32
#: where beats are taken at once: a verdict on a draft, too
PROMPT_FRAMES = 46
IN_TURN = Switches(policy=FIXED, tau=0, max_draft=1, eager=False)
ALONE = Switches(policy=FIXED, tau=0, max_draft=0, eager=False)
EAGER = Switches(policy=FIXED, tau=0, max_draft=2)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """H of 3 bits: 1.0 is 4."""
    for module in (manager_layouts, event_layouts, pool_layouts, draft_controller, shared_pool, pool_parameters,
                   shared_parameters):
        monkeypatch.setattr(module, "H_WIDTH", 3)
    monkeypatch.setattr(draft_controller, "_ONE", 4)


def specification(switches: Switches, module: str = "", *changes: tuple[str, str],
                  prompt: bool = False) -> ManagerSpecification:
    """Of a Manager with fixed settings, maybe with other code."""
    return ManagerSpecification(*changed_manager(PARAMS, module, *changes),
                                settings_value(PARAMS, switches.fitted(PARAMS)), prompt=prompt)


def test_flags_and_texts_are_what_the_streams_say() -> None:
    """Draft and target in turn: for all cycles."""
    spec = specification(IN_TURN)
    assert isinstance(check(spec, spec.inputs, simplify=True), Proven)


def test_flags_and_texts_are_what_the_streams_say_when_eager() -> None:
    spec = specification(EAGER)
    assert isinstance(check(spec, spec.inputs, frames=FRAMES), Bounded)


@pytest.mark.parametrize(("module", "old", "new"), [
    ("requests.request_flags", "self.changes.set[name] - self.changes.clear[name]", "self.changes.set[name]"),
    ("events.take_verdict", "position.eq(row.base + index)", "position.eq(row.base)"),
    ("events.take_request", "wanted.eq(given.position < given.stop)", "wanted.eq(1)"),
    ("events.take_request", "answer.empty.eq(1)", "answer.empty.eq(0)"),
    ("events.take_verdict", "self.changes.clear.alive.eq(self._ended)", "self.changes.clear.alive.eq(~stays)"),
    ("events.take_request", "self.draft.more.eq(several)", "self.draft.more.eq(1)"),
    ("events.take_verdict", "self.changes.set.stale.eq(here.drafting)", "self.changes.set.stale.eq(1)"),
    ("requests.readiness", "work.passes.eq(~passing & live", "work.passes.eq(live"),
    ("events.take_verdict", "here.verifying & ~(locked < told.accepted)", "~(locked < told.accepted)"),
    ("events.take_verdict", "here.verifying & ~(locked < told.accepted)", "here.verifying"),
    ("events.take_token", "drop.eq(here.stale | ~here.drafting)", "drop.eq(here.stale)"),
], ids=["count", "position", "nothing wanted", "no answer", "alive", "last token", "stale", "two passes", "idle",
        "too many", "not asked for"])
def test_broken_managers_are_noticed(module: str, old: str, new: str) -> None:
    """Without drafts where that shows it: verdicts come sooner."""
    drafts = "position.eq" in old or "several" in old
    spec = specification(IN_TURN if drafts else ALONE, module, (old, new), prompt=True)
    assert isinstance(check(spec, spec.inputs, frames=PROMPT_FRAMES), Violated)
