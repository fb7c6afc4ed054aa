"""A Scenario and its Timeline go in, what theory says of the makespan comes out: a closed form or a lower bound.

Every form names its source and the condition it holds under, and is evaluated exactly, in ticks. The symbols are those
of the vocabulary block: K, M, f and b (forward and full backward of a stage), c (latency of a hop), s over stages.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal, NamedTuple

from pipesched.model import Costs, Message
from pipesched.scenario import Scenario


class Formula(NamedTuple):
    """``symbols`` (mathematics, the same in every language) is ``relation`` the makespan; ``ticks`` is its value.

    ``terms`` are the symbols with the numbers put in, as parts (text or ticks); ``source`` is the paper, or says where
    else it comes from.
    """

    relation: Literal["equals", "at_most"]
    symbols: str
    terms: tuple[str | int, ...]
    ticks: int
    source: str | Message


@dataclass(frozen=True)
class Theory:
    """What is known of a scenario's makespan.

    ``formula`` holds for it. ``textbook`` tells why the textbook's M + K - 1 is not it, in the order of importance;
    empty where it applies, in steps of ``step`` ticks.
    """

    formula: Formula
    textbook: tuple[Message, ...]
    step: int


GPIPE = "GPipe (arXiv 1811.06965) s2.3"
MEGATRON = "Megatron-LM (arXiv 2104.04473) s2.2.1"


@dataclass(frozen=True)
class _Pipe:
    """The letters of the formulas: per-stage ticks f, b, the latency c, M and K."""

    f: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    M: int
    K: int

    @property
    def equal(self) -> bool:
        return len(set(self.f)) == 1 and len(set(self.b)) == 1


def theory(scenario: Scenario, costs: Costs) -> Theory:
    """Return the closed form of ``scenario``, or the lower bound where there is none.

    >>> scenario = Scenario(slow_factor=2)
    >>> form = theory(scenario, scenario.costs).formula
    >>> form.symbols, form.ticks
    ('Σ f + (M − 1) · max f', 10)
    """
    pipe = _Pipe(
        costs.durations["F"],
        costs.durations["B"],
        costs.latency,
        scenario.micro_batches,
        scenario.devices,
    )
    formula = FORMS[scenario.schedule](pipe)
    step = pipe.f[0] + (pipe.b[0] if scenario.schedule != "forward" else 0)
    return Theory(formula, tuple(_why_not_textbook(scenario, pipe)), step)


def _why_not_textbook(scenario: Scenario, pipe: _Pipe) -> list[Message]:
    """Say which assumption of makespan = (M + K - 1) equal steps does not hold."""
    why = []
    if scenario.schedule == "sequential" and pipe.K > 1 < pipe.M:
        why.append(Message("textbook.no_overlap"))
    if not pipe.equal:
        slowest = max(range(len(pipe.f)), key=lambda s: pipe.f[s] + pipe.b[s])
        why.append(Message("textbook.unequal", {"stage": slowest}))
    if pipe.c and pipe.K > 1:
        why.append(Message("textbook.latency"))
    return why


def _forward(p: _Pipe) -> Formula:
    if p.equal and not p.c:
        return Formula("equals", "(M + K − 1) · f", _steps(p, p.f[0]), (p.M + p.K - 1) * p.f[0], GPIPE)
    ticks = sum(p.f) + (p.K - 1) * p.c + (p.M - 1) * max(p.f)
    terms = (sum(p.f), *_hops(p, 1), f" + ({p.M} − 1) · ", max(p.f))
    return Formula("equals", f"Σ f{_hop_symbols(p, 1)} + (M − 1) · max f", terms, ticks, Message("source.flow_shop"))


def _sequential(p: _Pipe) -> Formula:
    ticks = p.M * (sum(p.f) + sum(p.b) + 2 * (p.K - 1) * p.c)
    if p.equal:
        symbols, terms = f"K · (f + b){_hop_symbols(p, 2)}", (f"{p.K} · (", p.f[0], " + ", p.b[0], ")", *_hops(p, 2))
    else:
        symbols, terms = f"Σ (f + b){_hop_symbols(p, 2)}", (sum(p.f) + sum(p.b), *_hops(p, 2))
    if not p.c and p.equal:
        return Formula("equals", f"M · {symbols}", (f"{p.M} · ", *terms), ticks, GPIPE)
    return Formula("equals", f"M · ({symbols})", (f"{p.M} · (", *terms, ")"), ticks, GPIPE)


def _gpipe(p: _Pipe) -> Formula:
    if p.equal:
        ticks = (p.M + p.K - 1) * (p.f[0] + p.b[0]) + 2 * (p.K - 1) * p.c
        symbols = f"(M + K − 1) · (f + b){_hop_symbols(p, 2)}"
        return Formula("equals", symbols, (*_steps(p, p.f[0], p.b[0]), *_hops(p, 2)), ticks, GPIPE)
    ticks = sum(p.f) + sum(p.b) + 2 * (p.K - 1) * p.c + (p.M - 1) * (max(p.f) + max(p.b))
    terms = (sum(p.f) + sum(p.b), *_hops(p, 2), f" + ({p.M} − 1) · (", max(p.f), " + ", max(p.b), ")")
    symbols = f"Σ (f + b){_hop_symbols(p, 2)} + (M − 1) · (max f + max b)"
    return Formula("equals", symbols, terms, ticks, Message("source.flow_shop"))


def _1f1b(p: _Pipe) -> Formula:
    """With latency, each round trip of the K micro-batches in flight is paid for again in the steady state."""
    if not p.equal:
        return _lower_bound(p)
    round_trips = (p.K - 1) + (p.M - 1) - ceil(Fraction(p.M - 1, p.K))
    ticks = (p.M + p.K - 1) * (p.f[0] + p.b[0]) + 2 * p.c * round_trips
    symbols, terms = "(M + K − 1) · (f + b)", _steps(p, p.f[0], p.b[0])
    if p.c:
        symbols += " + 2c · (K − 1 + M − 1 − ⌈(M − 1) / K⌉)"
        terms = (*terms, " + 2 · ", p.c, f" · {round_trips}")
        return Formula("equals", symbols, terms, ticks, Message("source.latency", {"paper": MEGATRON}))
    return Formula("equals", symbols, terms, ticks, MEGATRON)


def _lower_bound(p: _Pipe) -> Formula:
    """Bound any schedule of whole backwards, one stage a device: each stage must be reached, do its work, be left.

    For stage s: what lies before it takes head_s forward and tail_s backward, what lies after it takes loop_s there
    and back. It cannot start before head_s, and after its last backward tail_s remains; either all its M forwards
    precede the last round trip, or all its M backwards follow the first, or its work fills the time between.
    """
    best = 0
    for s, (f, b) in enumerate(zip(p.f, p.b, strict=True)):
        ends = sum(p.f[:s]) + sum(p.b[:s]) + 2 * s * p.c
        loop = sum(p.f[s + 1 :]) + sum(p.b[s + 1 :]) + 2 * (p.K - 1 - s) * p.c
        best = max(best, ends + p.M * (f + b), ends + f + loop + p.M * b, ends + p.M * f + loop + b)
    symbols = "max over s of: head + M (f + b) + tail, head + f + loop + M b + tail, head + M f + loop + b + tail"
    return Formula("at_most", symbols, (best,), best, Message("source.bound"))


def _steps(p: _Pipe, *step: int) -> tuple[str | int, ...]:
    if len(step) == 1:
        return (f"({p.M} + {p.K} − 1) · ", *step)
    return (f"({p.M} + {p.K} − 1) · (", step[0], " + ", step[1], ")")


def _hop_symbols(p: _Pipe, times: int) -> str:
    return "" if not p.c or p.K == 1 else " + (K − 1) · c" if times == 1 else f" + {times} · (K − 1) · c"


def _hops(p: _Pipe, times: int) -> tuple[str | int, ...]:
    if not p.c or p.K == 1:
        return ()
    return (f" + ({p.K} − 1) · " if times == 1 else f" + {times} · ({p.K} − 1) · ", p.c)


FORMS: dict[str, Callable[[_Pipe], Formula]] = {
    "forward": _forward,
    "sequential": _sequential,
    "gpipe": _gpipe,
    "1f1b": _1f1b,
}
