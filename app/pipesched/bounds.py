"""A Scenario and its Timeline go in, what theory says of it comes out: a closed form and a lower bound.

A form is written once, as the mathematics a reader sees; the numbers are put into that text and the text is evaluated,
exactly, in ticks. Each names its source and the conditions it holds under. The letters:

====  =======================================  ====  ===============================================
K     devices                                  f     forward of a stage
M     micro-batches, streams or slices         b     full backward of a stage
v     chunks per device                        i, w  its input and its weight gradient; b = i + w
n     tokens of a stream                       p     forward and full backward as one overlapped block
                                               c     latency of a hop
====  =======================================  ====  ===============================================
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pipesched.model import Message, Timeline
from pipesched.scenario import Scenario
from pipesched.schedules.interleaved_1f1b import accepted, group_size


class Form(NamedTuple):
    """``symbols`` (mathematics, the same in every language) is the ``of`` of a schedule where all of ``needs`` hold.

    ``of`` is the makespan, the longest span of a device, or the longest idle time of one. ``needs`` pairs each
    condition, as mathematics or a message, with whether it holds.
    """

    symbols: str
    source: str | Message
    needs: tuple[tuple[str | Message, bool], ...] = ()
    of: Literal["makespan", "longest_span", "idle"] = "makespan"

    @property
    def unmet(self) -> tuple[str | Message, ...]:
        """The conditions that do not hold."""
        return tuple(condition for condition, holds in self.needs if not holds)


@dataclass(frozen=True)
class Theory:
    """What is known of a scenario.

    Attributes
    ----------
    form, value, terms
        The closed form of the schedule, None where none is known; if all its ``needs`` hold, also its ``value`` in
        ticks and its ``terms``: the symbols with the numbers put in, as parts (text or ticks).
    bound
        A lower bound on the makespan in ticks: no order of these operations on these devices can be faster.
    textbook
        Why the textbook's M + K - 1 steps (of ``step`` ticks) are not the makespan; empty where they are.

    Examples
    --------
    >>> from pipesched import run
    >>> known = run(schedule="gpipe", devices=4, micro_batches=8).theory
    >>> known.form.symbols, known.value, known.bound
    ('(M + K − 1) · (f + b)', 33, 33)
    """

    form: Form | None
    value: int | None
    terms: tuple[str | int, ...]
    bound: int
    textbook: tuple[Message, ...]
    step: int


class _Pipe:
    """The letters of the formulas, and what conditions ask of the scenario."""

    def __init__(self, scenario: Scenario, timeline: Timeline) -> None:
        schedule, costs = timeline.schedule, timeline.costs
        self.K, self.M, self.n = scenario.devices, scenario.micro_batches, scenario.tokens
        self.v = max(1, schedule.stages // schedule.devices)
        self.f, self.b, self.i, self.w = (costs.durations[kind] for kind in "FBIW")
        self.c = costs.latency if self.K > 1 else 0
        self.pair = costs.paired["F"][0] + costs.paired["B"][0]
        self.equal = (EQUAL, all(len(set(times)) == 1 for times in (self.f, self.i, self.w)))
        self.plain = (
            (Message("condition.free_send"), not (costs.blocks and self.c)),
            (Message("condition.no_early"), scenario.recompute != "early"),
            (Message("condition.no_update"), not scenario.update),
        )
        self.still = ("c = 0", not self.c)
        self.group = group_size(scenario)

    def letters(self) -> dict[str, int | str]:
        """Return what to put in for each name: times as ticks, counts as text."""
        times = {
            **{f"Σ {letter}": sum(column) for letter, column in zip("fb", (self.f, self.b), strict=True)},
            **{f"max {letter}": max(column) for letter, column in zip("fb", (self.f, self.b), strict=True)},
            **{letter: column[0] for letter, column in zip("fbiw", (self.f, self.b, self.i, self.w), strict=True)},
            "c": self.c,
            "p": self.pair,
        }
        return {**times, **{letter: str(getattr(self, letter)) for letter in "KMvn"}}


EQUAL = Message("condition.equal")
FLOW_SHOP = Message("source.flow_shop")
GPIPE = "GPipe (arXiv 1811.06965) s2.3"
MEGATRON = "Megatron-LM (arXiv 2104.04473) s2.2.1"
LOOPED = "Megatron-LM (arXiv 2104.04473) s2.2.2"
BFS = "Breadth-first pipeline parallelism (arXiv 2211.05953)"
ZERO_BUBBLE = "Zero Bubble (arXiv 2401.10241) s2.3, table 2"
CONTROLLABLE = "Controllable memory (arXiv 2405.15362)"


def theory(scenario: Scenario, timeline: Timeline) -> Theory:
    """Return the closed form of ``scenario``, where one is known, and a lower bound.

    >>> from pipesched.run import run
    >>> known = run(slow_factor=2).theory
    >>> known.form.symbols, known.value
    ('Σ f + (M − 1) · max f', 10)
    """
    pipe = _Pipe(scenario, timeline)
    forms = FORMS[scenario.schedule](pipe) if scenario.schedule in FORMS else []
    form = next((form for form in forms if not form.unmet), forms[0] if forms else None)
    terms = () if form is None or form.unmet else _terms(form.symbols, pipe)
    step = pipe.f[0] + (pipe.b[0] if timeline.kinds > {"F"} else 0)
    value = _evaluate(terms) if terms else None
    return Theory(form, value, terms, lower_bound(timeline), tuple(_why_not_textbook(scenario, pipe)), step)


def gpipe_makespan(scenario: Scenario, timeline: Timeline) -> int | None:
    """Return what GPipe would take with the costs of ``timeline``, one stage a device; None where no form applies."""
    pipe = _Pipe(scenario, timeline)
    form = next((form for form in _gpipe(pipe) if not form.unmet), None)
    return None if form is None else _evaluate(_terms(form.symbols, pipe))


def _why_not_textbook(scenario: Scenario, pipe: _Pipe) -> list[Message]:
    """Say which assumption of makespan = (M + K - 1) equal steps does not hold."""
    why = []
    if scenario.schedule == "sequential" and pipe.K > 1 < pipe.M:
        why.append(Message("textbook.no_overlap"))
    elif scenario.schedule not in TEXTBOOK:
        why.append(Message("textbook.other_order", {"schedule": Message(f"schedule.{scenario.schedule}")}))
    if not pipe.equal[1]:
        slowest = max(range(len(pipe.f)), key=lambda s: pipe.f[s] + pipe.b[s])
        why.append(Message("textbook.unequal", {"stage": slowest}))
    if pipe.c:
        why.append(Message("textbook.latency"))
    if scenario.recompute == "early":
        why.append(Message("textbook.recompute"))
    if scenario.update:
        why.append(Message("textbook.update"))
    return why


TEXTBOOK = {"forward", "sequential", "gpipe", "1f1b", "eager_1f1b", "terapipe", "pipedream", "pipedream_2bw"}
"""Schedules whose makespan is M + K - 1 equal steps under the textbook's assumptions (sequential: if M or K is 1)."""


def _terms(symbols: str, pipe: _Pipe) -> tuple[str | int, ...]:
    letters = pipe.letters()
    names = "|".join(map(re.escape, sorted(letters, key=len, reverse=True)))
    parts = re.split(rf"(?<![a-zΣ])({names})(?![a-z(])", symbols)
    return tuple(letters.get(part, part) for part in parts if part)


def _evaluate(terms: tuple[str | int, ...]) -> int:
    """Work out a formula with its numbers put in: + − · / (without rest), ⌈ / ⌉, max and min."""
    text = "".join(part if isinstance(part, str) else str(part) for part in terms)
    text = re.sub(r"⌈(.+?) / (.+?)⌉", r"-(-\1 // \2)", text)
    text = text.replace("·", "*").replace("−", "-").replace(" / ", " // ")

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(int(number)):
                return number
            case ast.UnaryOp(ast.USub(), operand):
                return -value(operand)
            case ast.BinOp(left, operator, right):
                return int(OPERATORS[type(operator)](value(left), value(right)))
            case ast.Call(ast.Name(name), arguments):
                return {"max": max, "min": min}[name](map(value, arguments))
        raise ValueError(ast.dump(node))

    return value(ast.parse(text, mode="eval").body)


OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
    ast.FloorDiv: int.__floordiv__,
}


def lower_bound(timeline: Timeline) -> int:
    """Return ticks below which no order of these operations on these devices can end.

    A device must be reached, do all its work and be left again; one micro-batch must travel the whole way. Where
    stage s alone lives on device s and backwards are whole, all forwards of a stage also precede its last round trip
    through the later stages, and all its backwards follow the first. Each is true of any order, so the largest counts.
    """
    stages = range(timeline.schedule.stages)
    kinds, homes = _kinds_and_homes(timeline)
    hop = [timeline.costs.latency * homes[s].isdisjoint(homes[s + 1]) for s in stages[:-1]] + [0]
    trains = kinds > {"F"}
    f, back = _least(timeline, "F"), _least(timeline, "I" if "I" in kinds else "B") if trains else (0,) * len(stages)
    way = range(len(stages) + 1)
    reach = [sum(f[:s]) + sum(hop[:s]) for s in way]
    leave = [sum(back[:s]) + sum(hop[:s]) for s in way] if trains else [reach[-1] - reach[s] - f[s] for s in stages]
    rounds = -(-timeline.schedule.micro_batches // timeline.schedule.streams) if timeline.schedule.streams else 1
    bounds = [rounds * reach[-1] + sum(back) + (sum(hop) if trains else 0)]
    for device, (starts, ends) in enumerate(zip(timeline.starts, timeline.ends, strict=True)):
        here = [s for s in stages if device in homes[s]]
        tail = 0 if kinds & {"W", "U"} else min((leave[s] for s in here), default=0)
        bounds.append(sum(ends) - sum(starts) + min((reach[s] for s in here), default=0) + tail)
    if kinds == {"F", "B"} and homes == [{s} for s in stages]:
        count = timeline.schedule.micro_batches
        for s in stages:
            loop = sum(f[s + 1 :]) + sum(back[s + 1 :]) + 2 * sum(hop[s:])
            work = max(f[s] + count * back[s], count * f[s] + back[s])
            bounds.append(reach[s] + work + loop + leave[s])
    return max(bounds)


def _least(timeline: Timeline, kind: str) -> tuple[int, ...]:
    """Return, per stage, below what time no operation of ``kind`` is through: where pairs overlap, its part of one."""
    alone, paired = timeline.costs.durations[kind], timeline.costs.paired[kind]
    return tuple(map(min, alone, paired)) if timeline.schedule.has_pairs else alone


def _kinds_and_homes(timeline: Timeline) -> tuple[set[str], list[set[int]]]:
    """Return the kinds of operations there are, and per stage the devices it lives on."""
    kinds: set[str] = set()
    homes: list[set[int]] = [set() for _ in range(timeline.schedule.stages)]
    for device, row in enumerate(timeline.schedule.rows):
        for stage, kind in {(op.stage, op.kind) for cell in row for op in cell.ops}:
            kinds.add(kind)
            homes[stage].add(device)
    return kinds, homes


def _forward(p: _Pipe) -> list[Form]:
    hops = " + (K − 1) · c" if p.c else ""
    blocked = (Message("condition.blocking"), not p.plain[0][1])
    return [
        Form(f"(M + K − 1) · f{hops}", GPIPE, (p.equal, p.plain[0])),
        Form(f"Σ f{hops} + (M − 1) · max f", FLOW_SHOP, (p.plain[0],)),
        Form("K · f + (K − 1) · c + (M − 1) · (f + c)", FLOW_SHOP, (p.equal, blocked)),
    ]


def _decode(p: _Pipe) -> list[Form]:
    """A stream's next token is ready after the loop through all stages and back; M streams share the slowest stage."""
    loop = "Σ f + K · c" if p.c else "Σ f"
    hops = " + (K − 1) · c" if p.c else ""
    own = Message("source.own")
    return [
        Form("(n · max(M, K) + min(M, K) − 1) · f", own, (p.equal, p.still, p.plain[0])),
        Form(f"(n − 1) · max(M · max f, {loop}) + Σ f{hops} + (M − 1) · max f", own, (p.plain[0],)),
    ]


def _sequential(p: _Pipe) -> list[Form]:
    hops = " + 2 · (K − 1) · c" if p.c else ""
    plain, uneven = ("M · (K · (f + b){})", "M · (Σ f + Σ b{})")
    return [
        Form(plain.format(hops), GPIPE, (p.equal, *p.plain)),
        Form(uneven.format(hops), GPIPE, p.plain),
    ]


def _gpipe(p: _Pipe, source: str = GPIPE) -> list[Form]:
    hops = " + 2 · (K − 1) · c" if p.c else ""
    again = (Message("condition.early"), not p.plain[1][1])
    return [
        Form(f"(M + K − 1) · (f + b){hops}", source, (p.equal, *p.plain)),
        Form(f"Σ f + Σ b{hops} + (M − 1) · (max f + max b)", FLOW_SHOP, p.plain),
        Form(
            "(M + K − 1) · f + M · (f + b) + (K − 1) · b",
            Message("source.own"),
            (p.equal, p.still, again, p.plain[2]),
        ),
    ]


def _1f1b(p: _Pipe, source: str = MEGATRON) -> list[Form]:
    """With latency, each round trip of the K micro-batches in flight is paid for again in the steady state."""
    trips = " + 2 · c · (K − 1 + M − 1 − ⌈(M − 1) / K⌉)" if p.c else ""
    origin = Message("source.latency", {"paper": source}) if p.c else source
    return [Form(f"(M + K − 1) · (f + b){trips}", origin, (p.equal, *p.plain))]


def _eager(p: _Pipe) -> list[Form]:
    hops = " + 2 · (K − 1) · c" if p.c else ""
    in_time = ("2 · c ≤ f + b", 2 * p.c <= p.f[0] + p.b[0])
    return [Form(f"(M + K − 1) · (f + b){hops}", Message("source.own"), (p.equal, in_time, *p.plain))]


def _groups(p: _Pipe, hops: str, *more: tuple[str | Message, bool]) -> list[Form]:
    legal = ("K ≤ g ≤ M ∧ (M mod g = 0 ∨ M mod g ≥ K)", accepted(p.group, p.M, p.K))
    one = ("g = M ≤ K", p.group == p.M <= p.K)
    return [
        Form(f"(M · v + K − 1) · (f + b){hops}", LOOPED, (p.equal, legal, *more, *p.plain)),
        Form("(K · v + M − 1) · (f + b)", Message("source.own"), (p.equal, one, p.still, *p.plain)),
    ]


def _interleaved(p: _Pipe) -> list[Form]:
    if p.v == 1:
        return _eager(p)
    hops = " + 2 · (K · v − 1) · c" if p.c else ""
    short = ("c = 0 ∨ (g = K ∧ c ≤ (f + b) / 4)", not p.c or (p.group == p.K and 4 * p.c <= p.f[0] + p.b[0]))
    return _groups(p, hops, short)


def _bfs(p: _Pipe) -> list[Form]:
    wait = " + 2 · (K − 1) · c + (v − 1) · (max(0, K · (f + c) − M · f) + max(0, K · (b + c) − M · b))" if p.c else ""
    many, few = ("M ≥ K", p.M >= p.K), ("M ≤ K", p.M <= p.K)
    return [
        Form(f"(M · v + K − 1) · (f + b){wait}", BFS, (p.equal, many, *p.plain)),
        Form("(K · v + M − 1) · (f + b)", BFS, (p.equal, few, p.still, *p.plain)),
    ]


def _dfs(p: _Pipe) -> list[Form]:
    return _groups(p, "", p.still)


def _zb_h1(p: _Pipe) -> list[Form]:
    """Where w > i the last device ends later than the first, and only the span is what the paper says."""
    f, i, w = p.f[0], p.i[0], p.w[0]
    short = ("w ≤ min(f, i)", w <= min(f, i))
    form, rest = "M · (f + i + w) + (K − 1) · (f + i − w)", (p.equal, p.still, *p.plain)
    return [
        Form(form, ZERO_BUBBLE, (*rest, ("M ≥ K", p.M >= p.K), short)),
        Form("(M + K − 1) · (f + i) + w", ZERO_BUBBLE, (*rest, ("M ≤ K", p.M <= p.K), short)),
        Form(form, ZERO_BUBBLE, (*rest, ("M ≥ 2K − 1", p.M >= 2 * p.K - 1), ("w ≤ f", w <= f)), "longest_span"),
    ]


def _zb_h2(p: _Pipe) -> list[Form]:
    f, i, w = p.f[0], p.i[0], p.w[0]
    many, short = ("M ≥ 2K − 1", p.M >= 2 * p.K - 1), ("w ≤ f ∧ 2w ≤ f + i", w <= f and 2 * w <= f + i)
    form = "M · (f + i + w) + (K − 1) · (f + i − 2 · w)"
    return [Form(form, ZERO_BUBBLE, (p.equal, p.still, many, short, *p.plain), "longest_span")]


def _v_shaped(span: Callable[[_Pipe], str], source: str, least: Callable[[int], int], letter: str) -> "Forms":
    def forms(p: _Pipe) -> list[Form]:
        units = ("f = i = w", p.f[0] == p.i[0] == p.w[0])
        many = (f"M ≥ {letter}", least(p.K) <= p.M)
        return [Form(span(p), source, (p.equal, units, p.still, many, *p.plain), "longest_span")]

    return forms


def _chimera(p: _Pipe) -> list[Form]:
    form = "K · f + (2 · K − 2) · b + (M / K − 1) · (K · (f + b) + (K − 2) · (b − f))"
    needs = (("M mod K = 0", p.M % p.K == 0), ("b ≥ f", p.b[0] >= p.f[0]))
    return [Form(form, Message("source.own"), (p.equal, p.still, *needs, *p.plain))]


def _dualpipe(depth: str) -> "Forms":
    def forms(p: _Pipe) -> list[Form]:
        needs = (
            ("i = f", p.i[0] == p.f[0]),
            ("w ≤ f", p.w[0] <= p.f[0]),
            ("b ≤ p ≤ f + b", p.b[0] <= p.pair <= p.f[0] + p.b[0]),
        )
        source = "DeepSeek-V3 (arXiv 2412.19437), table 2"
        return [Form(f"({depth} − 1) · (p + b − 3 · w)", source, (p.equal, p.still, *needs, *p.plain), "idle")]

    return forms


Forms = Callable[[_Pipe], list[Form]]

FORMS: dict[str, Forms] = {
    "forward": _forward,
    "decode": _decode,
    "sequential": _sequential,
    "gpipe": _gpipe,
    "terapipe": lambda p: _gpipe(p, "TeraPipe (arXiv 2102.07988), eq. 5"),
    "1f1b": _1f1b,
    "eager_1f1b": _eager,
    "pipedream": lambda p: _1f1b(p, "PipeDream (arXiv 1806.03377)"),
    "pipedream_2bw": lambda p: _1f1b(p, "PipeDream-2BW (arXiv 2006.09503)"),
    "interleaved_1f1b": _interleaved,
    "looped_bfs": _bfs,
    "looped_dfs": _dfs,
    "zb_h1": _zb_h1,
    "zb_h2": _zb_h2,
    "zb_v": _v_shaped(lambda p: "6 · M · f", "Zero Bubble (arXiv 2401.10241v1) s6", lambda K: 2 * K - 1, "2K − 1"),
    "v_min": _v_shaped(
        lambda p: "6 · M · f" if p.K == 1 else f"(6 · M + 4 · K − {5 if p.K % 3 else 3}) · f",
        CONTROLLABLE, lambda K: 3 * K, "3K",
    ),
    "v_half": _v_shaped(
        lambda p: "(6 · M + 7 · (K − 1) / 2) · f" if p.K % 2 else "(6 · M + (7 · K − 4) / 2) · f",
        CONTROLLABLE, lambda K: 3 * K, "3K",
    ),
    "chimera": _chimera,
    "dualpipe": _dualpipe("K / 2"),
    "dualpipe_v": _dualpipe("K"),
}  # fmt: skip
"""Per schedule its closed forms, the one to name first; a schedule that is not here has none."""
