"""A Scenario and its Timeline go in, what a reader should know before citing the numbers comes out.

Which frameworks refuse the case, which rule was followed where several are in use, and what the picture does not show.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pipesched.bounds import gpipe_makespan
from pipesched.metrics import Metrics
from pipesched.model import Message, Timeline
from pipesched.notation import parse
from pipesched.scenario import Scenario
from pipesched.schedules import REGISTRY
from pipesched.schedules.interleaved_1f1b import group_size


class Note(NamedTuple):
    """A sentence; where it offers an alternative, the ``settings`` to change for that."""

    message: Message
    settings: Mapping[str, Any] | None = None


WITH_NOTE = frozenset({
    "chimera", "decode", "dualpipe", "dualpipe_v", "gpipe", "looped_bfs", "pipedream", "pipedream_2bw", "terapipe",
    "v_half", "v_min", "wave", "zb_auto",
})  # fmt: skip
"""Schedules about which there is something to say whatever the settings: ``schedule.<name>.note``."""
INTERLEAVED = frozenset({"interleaved_1f1b", "interleaved_zb", "looped_dfs"})


def notes(scenario: Scenario, timeline: Timeline, metrics: Metrics) -> list[Note]:
    """Return the notes on a scenario, the most specific first.

    >>> from pipesched import run
    >>> result = run(schedule="1f1b", devices=4, micro_batches=2)
    >>> [note.message.key for note in notes(result.scenario, result.timeline, result.metrics)]
    ['note.vs_gpipe.equal', 'note.torch_1f1b']
    """
    name = scenario.schedule
    found: list[Note] = []
    if name == "1f1b":
        found += _against_gpipe(scenario, timeline, metrics)
    if name in INTERLEAVED and scenario.chunks > 1:
        found += _groups(scenario)
    if metrics.longest_span < metrics.makespan and REGISTRY[name].family == "zero_bubble":
        spans = {"span": metrics.longest_span, "makespan": metrics.makespan}
        found.append(Note(Message("note.span", spans)))
    if name == "order" and scenario.order and (left_out := parse(scenario.order).left_out):
        found.append(Note(Message("notation.left_out", {"n": left_out})))
    if name in WITH_NOTE:
        found.append(Note(Message(f"schedule.{name}.note", {"n": scenario.micro_batches})))
    if scenario.batch and name != "order" and scenario.batch % scenario.micro_batches:
        values = {"batch": scenario.batch, "n": scenario.micro_batches, "samples": scenario.size()[0]}
        found.append(Note(Message("note.batch", values)))
    if scenario.recompute != "none" and REGISTRY[name].family != "inference":
        found.append(Note(Message("note.recompute")))
    return found


def _against_gpipe(scenario: Scenario, timeline: Timeline, metrics: Metrics) -> Iterator[Note]:
    """Answer the wide-spread error that 1F1B had the smaller bubble, where it arises."""
    gpipe = gpipe_makespan(scenario, timeline)
    if gpipe is not None:
        values = {"makespan": metrics.makespan, "gpipe": timeline.costs.time(gpipe), "n": scenario.micro_batches}
        peak, key = max(metrics.peak_activations), "same" if gpipe == timeline.end else "other"
        if key == "same" and peak == scenario.micro_batches:
            key = "equal"  # with so few micro-batches not even memory is saved on the first device
        yield Note(Message(f"note.vs_gpipe.{key}", {**values, "peak": peak}))
    if scenario.micro_batches < scenario.devices:
        yield Note(Message("note.torch_1f1b"))


def _groups(scenario: Scenario) -> Iterator[Note]:
    """Say which group size is used where K does not divide M, who refuses the case, and what others do."""
    size, count, devices = group_size(scenario), scenario.micro_batches, scenario.devices
    rounds = max(1, count // devices)
    values = {"group": size, "n": count, "devices": devices, "rounds": rounds, "rest": count % size}
    if size == count < devices:
        yield Note(Message("note.group.few", values))
    elif size < devices:
        yield Note(Message("note.group.small", values))
    elif 0 < count % size < devices:
        yield Note(Message("note.group.refused", values))
    elif count % devices and scenario.group is None:
        same = count % rounds == 0 and count // rounds == size
        yield Note(Message("note.group.shared" if same else "note.group.chosen", values))
    if count % devices and count > devices:
        if count % rounds:
            yield Note(Message("note.group.torch_refuses", values))
        else:
            yield from _offer(scenario, "note.group.torch", {"group": count // rounds}, rounds=rounds)
        yield from _offer(scenario, "note.group.cut", {"group": devices})
        filled = count + devices - count % devices
        if filled <= 1024:
            yield Note(Message("note.group.filled", {"count": filled}), {"micro_batches": filled, "group": ""})


def _offer(scenario: Scenario, key: str, settings: dict[str, int], **more: int) -> Iterator[Note]:
    if settings["group"] != group_size(scenario):
        yield Note(Message(key, {**settings, **more}), settings)
