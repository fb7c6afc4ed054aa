"""The lessons: a guided walk in twelve steps. The name of a step goes in; its settings, words and verdict come out.

A step asks for a number that the page shows, or for a block of its chart, before it is revealed. What is right stands
nowhere in here: it is read off the simulated scenario, by the name of a metric or by what held up a start.

The words of a step are ``lesson.<step>.title``, ``.text`` and ``.question``, then ``.wrong`` (how to get there) for
those who did not, and ``.right`` (what to notice) for all. ``{answer}`` and the readings in ``Step.values`` fill them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from pipesched.explain import name
from pipesched.model import Cell, Message, Op
from pipesched.reading import exact_number
from pipesched.run import Result, run
from pipesched.words import SHARES, number, percent, sentence

Settings = Mapping[str, Any]
Value = int | float


class Reading(NamedTuple):
    """A number of a scenario: the metric called ``metric``, of device or stage ``place`` where there is one of each.

    ``idle`` is the one that is no metric of its own: makespan - busy of a device. ``settings`` are those of another
    scenario to read it from; None: that of the step.
    """

    metric: str
    place: int | None = None
    settings: Settings | None = None

    def value(self, step: Settings) -> Value:
        """Return the number, simulated."""
        metrics = run(**(step if self.settings is None else self.settings)).metrics
        if self.metric == "idle":
            return metrics.makespan - metrics.busy[self.place or 0]
        found: Any = getattr(metrics, self.metric)
        value: Value = found if self.place is None else found[self.place]
        return value

    def text(self, step: Settings, language: str) -> str:
        """Return the number as people read it; shares as percentages."""
        value = self.value(step)
        return percent(value, language) if self.metric in SHARES else number(value, language)


class Start(NamedTuple):
    """The block whose end let ``op`` start."""

    op: Op


@dataclass(frozen=True)
class Step:
    """One step: the ``settings`` of its Scenario, what it ``asks``, and further readings that its words name."""

    name: str
    settings: Settings
    asks: Reading | Start
    values: Mapping[str, Reading] = field(default_factory=dict)

    @property
    def result(self) -> Result:
        """The step's scenario, simulated."""
        return run(**self.settings)

    @property
    def expected(self) -> Value | Cell:
        """What is right: a number, or a block of the chart."""
        if isinstance(self.asks, Reading):
            return self.asks.value(self.settings)
        timeline = self.result.timeline
        device, i = timeline.position[self.asks.op]
        cause = timeline.bound_by[device][i]
        assert cause is not None, "asked for what starts at once"
        return cause

    def filling(self, language: str) -> dict[str, str]:
        """Return what fills the placeholders of the step's words."""
        known = {key: reading.text(self.settings, language) for key, reading in self.values.items()}
        if isinstance(self.asks, Reading):
            return {**known, "answer": self.asks.text(self.settings, language)}
        return {**known, "answer": named(self.result, str(self.expected), language)}


MAKESPAN = Reading("makespan")
FOUR = {"devices": 4, "micro_batches": 8}
"""Four devices and eight micro-batches: the scene of the steps on training, so that their numbers compare."""
GPIPE = {**FOUR, "schedule": "gpipe"}
ONE_F_ONE_B = {**FOUR, "schedule": "1f1b"}
PAIRS = {"devices": 2, "micro_batches": 8, "tensor": 2, "forward": 2, "all_reduce": "0.125"}
"""The four devices in two pairs: twice the layers for each, and two all-reduces of 0.125 units in a forward."""
ONE_STREAM = {"schedule": "decode", "devices": 4, "micro_batches": 1, "tokens": 4}

STEPS = (
    Step("one-portion", {"micro_batches": 1}, MAKESPAN, {"busy": Reading("busy", 0)}),
    Step("four-portions", {}, MAKESPAN, {
        "alone": Reading("sequential_makespan"), "speedup": Reading("speedup"), "first": Reading("first_output"),
    }),
    Step("formula", FOUR, MAKESPAN, {
        "before": Reading("makespan", settings={}), "latency": Reading("makespan", settings={**FOUR, "comm": 1}),
    }),
    Step("bubble", {"devices": 4, "micro_batches": 4}, Start(Op(2, "F", 0)), {
        "share": Reading("bubble_fraction_of_total"),
        "more": Reading("bubble_fraction_of_total", settings={"devices": 4, "micro_batches": 16}),
    }),
    Step("slow-stage", {"micro_batches": 6, "slow_factor": 2}, Reading("peak_queue", 1), {
        "total": MAKESPAN, "plain": Reading("makespan", settings={"micro_batches": 6}),
        "slow": Reading("utilisation", 1), "fast": Reading("utilisation", 0),
    }),
    Step("gpipe", GPIPE, MAKESPAN, {
        "peak": Reading("peak_activations", 0), "share": Reading("bubble_fraction_of_total"),
    }),
    Step("1f1b", ONE_F_ONE_B, Reading("peak_activations", 0), {
        "gpipe": Reading("peak_activations", 0, GPIPE), "gpipe_total": Reading("makespan", settings=GPIPE),
        "total": MAKESPAN, "last": Reading("peak_activations", 3),
    }),
    Step("interleaving", {**FOUR, "schedule": "interleaved_1f1b", "chunks": 2}, MAKESPAN, {
        "busy": Reading("busy", 0), "idle": Reading("idle", 0), "plain": Reading("makespan", settings=ONE_F_ONE_B),
        "plain_idle": Reading("idle", 0, ONE_F_ONE_B), "peak": Reading("peak_micro_batches", 0),
        "plain_peak": Reading("peak_micro_batches", 0, ONE_F_ONE_B),
    }),
    Step("zero-bubble", {**FOUR, "schedule": "zb_h1"}, MAKESPAN, {
        "busy": Reading("busy", 0), "idle": Reading("idle", 0), "plain_idle": Reading("idle", 0, ONE_F_ONE_B),
        "peak": Reading("peak_micro_batches", 0),
        "h2_peak": Reading("peak_micro_batches", 0, {**FOUR, "schedule": "zb_h2"}),
    }),
    Step("tensor-parallel", PAIRS, MAKESPAN, {
        "pipeline": Reading("makespan", settings=FOUR), "share": Reading("bubble_fraction_of_total"),
        "pipeline_share": Reading("bubble_fraction_of_total", settings=FOUR),
        "quick": Reading("makespan", settings={**PAIRS, "all_reduce": "0.05"}),
    }),
    Step("one-stream", ONE_STREAM, Start(Op(0, "F", 1)), {"total": MAKESPAN, "use": Reading("utilisation", 0)}),
    Step("many-streams", {**ONE_STREAM, "micro_batches": 4}, MAKESPAN, {
        "one": Reading("makespan", settings=ONE_STREAM), "use": Reading("utilisation", 0),
        "one_use": Reading("utilisation", 0, ONE_STREAM),
    }),
)  # fmt: skip
NAMES = tuple(step.name for step in STEPS)


def find(wanted: str) -> Step:
    """Return the step called ``wanted``; the first one where none is."""
    return STEPS[NAMES.index(wanted)] if wanted in NAMES else STEPS[0]


def tell(step: Step, language: str) -> dict[str, Any]:
    """Return what a learner sees of ``step`` before answering, and how to go on from it."""
    at = STEPS.index(step)
    return {
        "name": step.name,
        "number": at + 1,
        "total": len(STEPS),
        "back": NAMES[at - 1] if at else None,
        "next": NAMES[at + 1] if at + 1 < len(NAMES) else None,
        "asks": "number" if isinstance(step.asks, Reading) else "pick",
        "reads": step.asks._asdict() if isinstance(step.asks, Reading) else None,
        "settings": step.result.scenario.settings(),
        "title": _say(step, "title", language),
        "text": _say(step, "text", language).split("\n"),
        "question": _say(step, "question", language),
    }


def judge(step: Step, guess: str | None, language: str) -> dict[str, Any]:
    """Compare ``guess`` (a number or an operation as text; None: show it to me) with what is right.

    Returns ``right`` (None where ``guess`` is no number: it is not held against the learner) and the paragraphs of the
    ``verdict``.
    """
    filling = step.filling(language)
    if guess is None:
        verdict, right = [sentence(Message("lesson.shown", filling), language)], False
    elif isinstance(step.asks, Reading):
        typed = exact_number(guess)
        if typed is None:
            return {"right": None, "verdict": [sentence(Message("lesson.no_number"), language)]}
        right = typed == Fraction(repr(step.expected))
        verdict = [_compared(right, number(typed, language), filling, language)]
    else:
        right = guess == str(step.expected)
        verdict = [_compared(right, named(step.result, guess, language), filling, language)]
    if not right:
        verdict.append(_say(step, "wrong", language))
    verdict.append(_say(step, "right", language))
    if step == STEPS[-1]:
        verdict.append(sentence(Message("lesson.end"), language))
    return {"right": right, "verdict": verdict}


def named(result: Result, op: str | None, language: str) -> str:
    """Say what the block ``op`` of a chart is; None, or one that the chart has not: an idle place."""
    cells = {str(cell): cell for row in result.timeline.schedule.rows for cell in row}
    if op not in cells:
        return sentence(Message("lesson.idle"), language)
    return sentence(name(cells[op], result.timeline.schedule.streams), language)


def _compared(right: bool, guess: str, filling: Mapping[str, str], language: str) -> str:
    return sentence(Message("lesson.right" if right else "lesson.wrong", {**filling, "guess": guess}), language)


def _say(step: Step, what: str, language: str) -> str:
    return sentence(Message(f"lesson.{step.name}.{what}", step.filling(language)), language)
