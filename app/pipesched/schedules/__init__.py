"""The registry: a Scenario goes in, the Schedule it names comes out.

A schedule is one file with one function and one decorator::

    @schedule(family="synchronous", source="...", since=2018)
    def gpipe(scenario):
        for stage in range(scenario.devices):
            yield [...]                       # the row of one device, first to last

The function's name is the schedule's name everywhere; its docstring's first line is the one-line idea. Importing the
file files it, so the selector, ``list`` and the property tests have a newcomer without being told. What an order needs
of K, M or v it says with ``require``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pkgutil import iter_modules

from pipesched.model import Cell, Message, Op, ScenarioError, Schedule
from pipesched.scenario import SETTINGS, Scenario

Rows = Iterator[Iterable[Cell]]
Order = Callable[[Scenario], Rows | Schedule]

FAMILIES = ("inference", "synchronous", "interleaved", "zero_bubble", "two_way", "asynchronous", "own")
"""The groups of the selector, in its order."""

SPECIAL = frozenset({"chunks", "times_of", "group", "memory_limit", "overlap", "tokens", "order"})
"""Settings that only the schedules which name them in ``uses`` look at."""
BYTES = frozenset({"hidden_size", "sequence_length", "micro_batch_size", "heads", "precision"})
"""Settings that only say how large the activations are that are kept for backwards."""
TRAINING = frozenset({"input_grad", "weight_grad", "recompute", "update", *BYTES})
"""Settings that mean nothing where nothing runs backward."""

MOST = 2_000_000
"""The most operations of a schedule: beyond that, memory and patience end."""


@dataclass(frozen=True)
class Entry:
    """A filed schedule: the function that orders it, and what a reader wants to know before choosing it."""

    name: str
    order: Order
    family: str
    source: str
    since: int
    """Year it was described, which orders its family; 0: older than any paper."""
    unused: frozenset[str]
    """Settings that do not change it; the page disables their controls and says so."""
    synonyms: tuple[str, ...]
    """Other names of the same order, or of its special cases, in papers and frameworks."""
    couples: Callable[[Scenario], Mapping[str, int]]
    """Fields of Schedule besides its rows."""
    size: Callable[[Scenario], int]
    """How many operations there will be, where that does not show until all are made; else 0."""

    @property
    def idea(self) -> str:
        """The one-line idea, from the function's docstring."""
        return (self.order.__doc__ or "").strip().split("\n")[0]


REGISTRY: dict[str, Entry] = {}


def schedule(
    *,
    family: str,
    source: str,
    since: int = 0,
    uses: Iterable[str] = (),
    ignores: Iterable[str] = (),
    synonyms: Iterable[str] = (),
    couples: Callable[[Scenario], Mapping[str, int]] = lambda _: {},
    size: Callable[[Scenario], int] = lambda _: 0,
) -> Callable[[Order], Order]:
    """File the decorated function under its own name (a leading underscore dropped: names may not start with 1).

    ``uses`` names the SPECIAL settings it looks at, ``ignores`` the common ones it does not; ``couples`` gives fields
    of Schedule besides its rows; ``size``, for a greedy that makes all rows at once, how many operations that will be.
    """

    def file(order: Order) -> Order:
        name = order.__name__.lstrip("_")
        unused = (SPECIAL - set(uses)) | (TRAINING if family == "inference" else set()) | set(ignores)
        REGISTRY[name] = Entry(name, order, family, source, since, frozenset(unused), tuple(synonyms), couples, size)
        return order

    return file


def arrange(scenario: Scenario, most: int = MOST) -> Schedule:
    """Return the order of every device for ``scenario``.

    Raises
    ------
    ScenarioError
        If the schedule's name is not in the registry, if its order is not defined for these K, M and v, or if it has
        more than ``most`` operations.

    Examples
    --------
    >>> [" ".join(map(str, row)) for row in arrange(Scenario(devices=2, micro_batches=2, schedule="1f1b")).rows]
    ['0F0 0F1 0B0 0B1', '1F0 1B0 1F1 1B1']
    """
    entry = REGISTRY.get(scenario.schedule)
    if entry is None:
        names = {"given": scenario.schedule, "names": ", ".join(REGISTRY)}
        raise ScenarioError("schedule", "error.schedule", names)
    built = entry.order(scenario)
    if not isinstance(built, Schedule):
        built = Schedule(_collected(built, scenario, most, entry.size(scenario)), **entry.couples(scenario))
    if entry.family != "inference" and (scenario.recompute == "early" or scenario.update):
        present = {op.kind for row in built.rows for cell in row for op in cell.ops}  # an order may bring its own
        if scenario.recompute == "early" and "R" not in present:
            built = replace(built, rows=tuple(_recomputing(row) for row in built.rows))
        if scenario.update and "U" not in present and entry.family != "asynchronous":
            built = replace(built, rows=tuple(_updated(row) for row in built.rows))
    return built


def _collected(rows: Rows, scenario: Scenario, most: int, total: int) -> tuple[tuple[Cell, ...], ...]:
    """Take in row after row, and stop where there are too many operations: ``total``, or else as the first row says."""
    taken: list[tuple[Cell, ...]] = []
    while True:
        if total > most:
            fewer = scenario.micro_batches * most // total
            raise ScenarioError(
                "micro_batches", "error.too_many", {"n": total, "most": most}, [{"micro_batches": str(fewer)}]
            )
        row = next(rows, None)
        if row is None:
            return tuple(taken)
        taken.append(tuple(row))
        total = total or len(taken[0]) * scenario.devices


def _recomputing(row: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Put before every backward the forward that makes its activations again (GPipe s2.3)."""
    new: list[Cell] = []
    for cell in row:
        new += [op._replace(kind="R") for op in cell.ops if op.kind in "BI"]
        new.append(cell)
    return tuple(new)


def _updated(row: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Put a weight update of each stage, and in two-way schedules of each copy, at the end: the flush."""
    last: dict[int, int] = {}
    for cell in row:
        for op in cell.ops:
            if op.kind in "BW":
                last[op.stage] = op.micro_batch
    return (*row, *(Op(stage, "U", micro_batch) for stage, micro_batch in last.items()))


def require(scenario: Scenario, field: str, holds: Callable[[int], bool], rule: str) -> None:
    """Refuse ``scenario`` unless its ``field`` satisfies the predicate ``holds``; name the nearest values that do.

    ``rule`` is the catalogue key of the sentence that states the rule.

    Raises
    ------
    ScenarioError
        Where the rule is broken.
    """
    given, setting = getattr(scenario, field), SETTINGS[field]
    if given is None or holds(given):
        return
    low, high = int(setting.low), int(setting.high)
    below = next((value for value in range(given - 1, low - 1, -1) if holds(value)), None)
    above = next((value for value in range(given + 1, high + 1) if holds(value)), None)
    near = [value for value in (below, above) if value is not None]
    title = Message(f"schedule.{scenario.schedule}")
    values = {"schedule": title, "given": given, "near": near, "devices": scenario.devices, "n": scenario.micro_batches}
    raise ScenarioError(field, rule, values, [{field: str(value)} for value in near])


def forwards(stage: int, micro_batches: Iterable[int]) -> list[Cell]:
    """Return the forwards of ``micro_batches`` on ``stage``, one after another."""
    return [Op(stage, "F", micro_batch) for micro_batch in micro_batches]


def backwards(stage: int, micro_batches: Iterable[int], kind: str = "B") -> list[Cell]:
    """Return the backwards of ``micro_batches`` on ``stage``, full or of one ``kind``, one after another."""
    return [Op(stage, kind, micro_batch) for micro_batch in micro_batches]


def alternate(ahead: int, one: list[Cell], other: list[Cell]) -> list[Cell]:
    """Return ``ahead`` cells of ``one``, then one of ``other`` and one of ``one`` in turn, then the rest of ``other``.

    The steady state of 1F1B and its relatives. No more are ahead than there are.

    >>> [str(cell) for cell in alternate(2, forwards(0, range(3)), backwards(0, range(3)))]
    ['0F0', '0F1', '0B0', '0F2', '0B1', '0B2']
    """
    row = one[:ahead]
    for i, cell in enumerate(other):
        row.append(cell)
        row += one[ahead + i : ahead + i + 1]
    return row


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
REGISTRY = dict(sorted(REGISTRY.items(), key=lambda item: (FAMILIES.index(item[1].family), item[1].since, item[0])))
