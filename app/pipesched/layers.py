"""Layers and a way to split them go in, what each stage holds comes out, or the reason why that is no split.

Layers are all alike and take one unit; the embedding stands before the first of them and the head (with the loss) after
the last, worth ``embedding`` and ``head`` layers of time. A multi-token-prediction layer, ``m``, takes the time of one
layer but is not among the L, as in Megatron-LM.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from pipesched.model import ScenarioError
from pipesched.reading import Number

MOST_SYMBOLS = 8192
"""The longest layout that is written out; 1024 layers on 512 stages stay far below."""


class Part(NamedTuple):
    """What a stage holds."""

    layers: int
    embedding: bool = False
    head: bool = False
    extra: int = 0
    """Layers for multi-token prediction, behind the L layers of the model."""

    @property
    def blocks(self) -> int:
        """Transformer layers of either sort: what tensor parallelism reduces over."""
        return self.layers + self.extra

    def weight(self, embedding: Number, head: Number) -> Number:
        """Return how many times longer than one layer the stage takes.

        >>> Part(7, embedding=True).weight(Fraction(1, 2), 2)
        Fraction(15, 2)
        """
        return self.blocks + (embedding if self.embedding else 0) + (head if self.head else 0)


def _parts(counts: Sequence[int]) -> tuple[Part, ...]:
    last = len(counts) - 1
    return tuple(Part(count, stage == 0, stage == last) for stage, count in enumerate(counts))


def even(layers: int, stages: int) -> tuple[Part, ...]:
    """Split ``layers`` so that no two of the ``stages`` differ by more than one; the first ones get more.

    >>> [part.layers for part in even(30, 4)]
    [8, 8, 7, 7]
    """
    least, more = divmod(layers, stages)
    return _parts([least + (stage < more) for stage in range(stages)])


def balanced(layers: int, stages: int, embedding: Number, head: Number) -> tuple[Part, ...]:
    """Split ``layers`` so that the largest stage is as small as it can be, embedding and head included.

    Layers are alike, so only how many a stage has matters, and giving each layer to the stage with the least work so
    far is exact: were a stage to grow beyond the optimum by that, every other one would be too full for a further layer
    as well. (Unit jobs on machines with a head start; tested against all splits.) Of equals, the first stage has it.

    >>> [part.layers for part in balanced(30, 4, 0, 3)]
    [9, 8, 8, 5]
    """
    counts, work = [0] * stages, [Fraction(0)] * stages
    work[0] += embedding
    work[-1] += head
    heap = [(load, stage) for stage, load in enumerate(work)]
    heapify(heap)
    for _ in range(layers):
        load, stage = heappop(heap)
        counts[stage] += 1
        heappush(heap, (load + 1, stage))
    return _parts(counts)


def parse(layout: str) -> tuple[Part, ...]:
    """Read a split that was written by hand: layer counts (``7, 8, 8, 9``), or Megatron-LM's layout.

    The latter is the text of ``--pipeline-model-parallel-layout``: E embedding, t transformer layer, m
    multi-token-prediction layer, L loss with the head; ``|`` ends a stage, ``x*n`` and ``(…)*n`` repeat, commas and
    blanks only please the eye. E is the first and L the last symbol, each once; a stage may be empty. The n-th stage is
    the n-th group, so of several chunks first those of chunk 1, device by device (Megatron Core, user guide, "Custom
    Pipeline Model Parallel Layout", and ``pipeline_parallel_layer_layout.py``).

    Raises
    ------
    ScenarioError
        At ``layout``, with the place where it cannot be read.

    Examples
    --------
    >>> [part.layers for part in parse("7,8 8;9")]
    [7, 8, 8, 9]
    >>> parse("Et*2|(t|)*2,mL")
    (Part(layers=2, embedding=True, head=False, extra=0), Part(layers=1, embedding=False, head=False, extra=0), \
Part(layers=1, embedding=False, head=False, extra=0), Part(layers=0, embedding=False, head=True, extra=1))
    """
    if re.fullmatch(r"[\d\s,;]+", layout, re.ASCII):
        counts = re.findall(r"\d+", layout)
        if counts and max(map(len, counts)) <= 4 and len(counts) <= MOST_SYMBOLS:
            return _parts([int(count) for count in counts])
        raise _fault("counts", 0)
    symbols = _Reader(layout).read()
    _check_ends(symbols, len(layout))
    parts = [Part(0)]
    for symbol, _ in symbols:
        here = parts[-1]
        if symbol == "|":
            parts.append(Part(0))
        elif symbol == "t":
            parts[-1] = here._replace(layers=here.layers + 1)
        elif symbol == "m":
            parts[-1] = here._replace(extra=here.extra + 1)
        else:
            parts[-1] = here._replace(embedding=here.embedding or symbol == "E", head=here.head or symbol == "L")
    return tuple(parts)


Symbol = tuple[str, int]
"""One of E, t, m, L and |, and the place in the text where it stands."""


class _Reader:
    """Writes a layout out, symbol by symbol."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def read(self) -> list[Symbol]:
        symbols = self._several(depth=0)
        if self.at < len(self.text):
            raise _fault("bracket", self.at)
        return symbols

    def _peek(self) -> str:
        while self.at < len(self.text) and (self.text[self.at] == "," or self.text[self.at].isspace()):
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _several(self, depth: int) -> list[Symbol]:
        found: list[Symbol] = []
        while (here := self._peek()) and here != ")":
            found += self._one(here, depth)
            if len(found) > MOST_SYMBOLS:
                raise _fault("many", self.at - 1)
        return found

    def _one(self, here: str, depth: int) -> list[Symbol]:
        place = self.at
        self.at += 1
        if here == "(":
            if depth > 8:
                raise _fault("bracket", place)
            found = self._several(depth + 1)
            if self._peek() != ")":
                raise _fault("bracket", place)
            self.at += 1
        elif here in "EtmL|":
            found = [(here, place)]
        else:
            raise _fault("symbol", place, given=here)
        if self._peek() == "*":
            found = found * self._times(max(1, len(found)))
        return found

    def _times(self, length: int) -> int:
        self.at += 1
        place = self.at
        digits = re.match(r"\s*([0-9]{1,5})(?![0-9])", self.text[place:])
        if digits is None:
            raise _fault("repeat", place)
        self.at += digits.end()
        times = int(digits[1])
        if times * length > MOST_SYMBOLS:
            raise _fault("many", place)
        return times


def _check_ends(symbols: list[Symbol], length: int) -> None:
    """Hold E and L to their places: the first and the last symbol, each once."""
    named = [symbol for symbol in symbols if symbol[0] != "|"]
    if not named or named[0][0] != "E":
        raise _fault("embedding", named[0][1] if named else 0)
    if named[-1][0] != "L":
        raise _fault("head", min(named[-1][1] + 1, length))
    for symbol, place in named[1:-1]:
        if symbol in "EL":
            raise _fault("embedding" if symbol == "E" else "head", place)


def _fault(key: str, place: int, **params: str) -> ScenarioError:
    return ScenarioError("layout", f"error.layout.{key}", {"place": place, **params})


def check(parts: Sequence[Part], layers: int, stages: int) -> ScenarioError | None:
    """Return why ``parts`` do not split ``layers`` over ``stages``, None where they do: a layer lost or doubled.

    >>> check(even(8, 4), 8, 4) is None, str(check(even(7, 4), 8, 4))
    (True, 'Layers of each stage: holds 7 layers, the model has 8.')
    """
    if len(parts) != stages:
        return ScenarioError("layout", "error.layout.stages", {"n": len(parts), "stages": stages})
    found = sum(part.layers for part in parts)
    if found != layers:
        return ScenarioError("layout", "error.layout.layers", {"n": found, "layers": layers})
    return None
