"""Why two columns take different tokens after the same text.

It is computed at the step itself, from the logits that both of them read: which stage of one
removed what the other took, or else what the dice fell on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from core.compare_records import Difference, Reason
from core.decode.lanes import Ids, Lane, Track
from core.faults import Fault
from core.settings import PROCESSOR_NAMES, Settings
from core.trace import Choice, Stage


@dataclass(frozen=True)
class Side:
    """What one column did at a step."""

    settings: Settings
    choice: Choice
    """With its stages."""

    def removed(self, token: int) -> Stage | None:
        """The stage that removed a token which the model itself allows.

        Greedy takes the top of what the processors leave, so its filters remove nothing.
        """
        for stage in self.choice.stages:
            acts = stage.name in PROCESSOR_NAMES or not self.settings.is_greedy
            if acts and stage.logits[token] == -np.inf:
                return stage
        return None


def parted(
    starts: Sequence[tuple[Track, Ids]],
    rows: Mapping[Ids, Float[np.ndarray, " vocabulary"] | Fault],
    tracks: Sequence[Track],
) -> None:
    """Note in each track where its first text now leaves that of another one of its model.

    ``starts`` are tracks that have just written a token of it, with what stood there before.
    """
    together: dict[Ids, list[Track]] = defaultdict(list)
    for track, before in starts:
        if track.fault is None and len(track.texts[0].ids) > len(before):
            together[before].append(track)
    places = {id(track): place for place, track in enumerate(tracks)}
    for before, group in together.items():
        row = rows[before]
        taken = {track.texts[0].ids[-1] for track in group}
        if len(taken) == 1 or isinstance(row, Fault):
            continue
        sides = [(track, _side(track, row, before)) for track in group]
        for track, here in sides:
            for other, there in sides:
                if here.choice.id != there.choice.id:
                    found = difference_at(len(before), here, there)
                    track.parted[places[id(other)]] = found


def _side(track: Track, row: Float[np.ndarray, " vocabulary"], before: Ids) -> Side:
    lane = track.lanes[0]
    assert isinstance(lane, Lane)  # beams are not among the starts
    return Side(lane.settings, lane.choice(row, before, with_stages=True))


def difference_at(step: int, here: Side, there: Side) -> Difference:
    """Why ``here`` and ``there`` took different tokens from the same logits."""
    ids = (here.choice.id, there.choice.id)
    if "forced" in (here.choice.rule, there.choice.rule):
        return Difference(step, "forced", *ids, removed_here=here.choice.rule == "forced")
    stage = here.removed(there.choice.id)
    if stage is not None:
        return Difference(step, "removed", *ids, stage.name, stage.parameter)
    stage = there.removed(here.choice.id)
    if stage is not None:
        return Difference(step, "removed", *ids, stage.name, stage.parameter, removed_here=False)
    mine, theirs = here.choice.u, there.choice.u
    if mine is None and theirs is None:
        return _changed(step, "reordered", here, there)
    if mine is None or theirs is None:
        return Difference(step, "not_drawn", *ids, removed_here=mine is None)
    if mine != theirs:
        return Difference(step, "other_dice", *ids)
    return _changed(step, "moved", here, there)


def _changed(step: int, reason: Reason, here: Side, there: Side) -> Difference:
    """The first stage that the two set differently: what moved the bar, or the top."""
    ids = (here.choice.id, there.choice.id)
    mine, theirs = here.settings, there.settings
    for name in (*PROCESSOR_NAMES, *mine.order):
        ours, others = mine.parameter(name), theirs.parameter(name)
        if ours != others:
            on_here = ours is not None and not (name == "temperature" and ours == 1)
            value = ours if on_here else others
            return Difference(step, reason, *ids, name, value, removed_here=on_here)
    return Difference(step, reason, *ids)
