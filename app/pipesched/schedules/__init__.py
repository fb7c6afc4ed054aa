"""The registry: a Scenario goes in, the Schedule it names comes out.

A schedule is one file with one function and one decorator::

    @schedule(family="synchronous", source="...", since=2018)
    def gpipe(scenario):
        for stage in range(scenario.devices):
            yield [...]                       # the row of one device, first to last

The function's name is the schedule's name everywhere; its docstring's first line is the one-line idea. Importing the
file files it, so the selector, ``list`` and the property tests have a newcomer without being told.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from pipesched.model import Cell, Op, ScenarioError, Schedule
from pipesched.scenario import Scenario

Rows = Iterator[Iterable[Cell]]
Order = Callable[[Scenario], Rows]

FAMILIES = ("inference", "synchronous")
"""The groups of the selector, in its order."""


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

    @property
    def idea(self) -> str:
        """The one-line idea, from the function's docstring."""
        return (self.order.__doc__ or "").strip().split("\n")[0]


REGISTRY: dict[str, Entry] = {}


def schedule(*, family: str, source: str, since: int = 0, unused: Iterable[str] = ()) -> Callable[[Order], Order]:
    """File the decorated function under its own name (a leading underscore dropped: names may not start with 1)."""

    def file(order: Order) -> Order:
        name = order.__name__.lstrip("_")
        REGISTRY[name] = Entry(name, order, family, source, since, frozenset(unused))
        return order

    return file


def arrange(scenario: Scenario) -> Schedule:
    """Return the order of every device for ``scenario``.

    Raises
    ------
    ScenarioError
        If the schedule's name is not in the registry.

    Examples
    --------
    >>> [" ".join(map(str, row)) for row in arrange(Scenario(devices=2, micro_batches=2, schedule="1f1b")).rows]
    ['0F0 0F1 0B0 0B1', '1F0 1B0 1F1 1B1']
    """
    entry = REGISTRY.get(scenario.schedule)
    if entry is None:
        names = {"given": scenario.schedule, "names": ", ".join(REGISTRY)}
        raise ScenarioError("schedule", "error.schedule", names)
    return Schedule(tuple(tuple(row) for row in entry.order(scenario)))


def forwards(stage: int, micro_batches: Iterable[int]) -> list[Cell]:
    """Return the forwards of ``micro_batches`` on ``stage``, one after another."""
    return [Op(stage, "F", micro_batch) for micro_batch in micro_batches]


def backwards(stage: int, micro_batches: Iterable[int]) -> list[Cell]:
    """Return the full backwards of ``micro_batches`` on ``stage``, one after another."""
    return [Op(stage, "B", micro_batch) for micro_batch in micro_batches]


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
REGISTRY = dict(sorted(REGISTRY.items(), key=lambda item: (FAMILIES.index(item[1].family), item[1].since, item[0])))
