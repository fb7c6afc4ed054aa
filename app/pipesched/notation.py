"""A Schedule goes in, its order as text or CSV comes out; and back.

Both are what PyTorch's ``torch.distributed.pipelining`` prints, dumps and loads: one line per device, on it what the
device runs, first to last. An operation is stage, kind and micro-batch, counted from 0; two of them may overlap::

    0F0 1F0 0F1 1B0 (1F1;0B0)OVERLAP_F_B 1B1 0I1 0W1    text: blanks between the operations
    0F0,0F1,,,0B0,0B1                                   CSV: commas, and an empty cell where the device waits

R (recompute) and U (weight update) are kinds of ours; PyTorch has none. When read, blanks, commas and quotes all
separate, so the format needs no announcing, and bubbles drop out: when something runs is for simulate.py to find, and
so is a deadlock. A line may begin with ``Rank 0:``, ``Device 0:`` or ``0:``. Blank lines and ``#`` lines are skipped;
a device that runs nothing is a line of its label alone, or of empty cells.

PyTorch's transfers and sharding (``0SEND_F0``, ``1UNSHARD``) are no compute: they are left out and counted.
Source: ``_Action`` and ``_dump_csv`` in torch/distributed/pipelining/schedules.py.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, product
from typing import NamedTuple, TypeAlias

from pipesched.model import Cell, Op, Pair, ScenarioError, Schedule

FIELD = "order"
MOST_ENTRIES, MOST_DEVICES, LAST_STAGE, LAST_MICRO_BATCH = 200_000, 4096, 4095, 65535
NAMED = 3  # this many missing operations are named, the others counted

LABEL = re.compile(r"\s*(?:(?:rank|device)\s*)?(\d{1,9})\s*:", re.ASCII | re.IGNORECASE)
ENTRY = re.compile(r'\([^()]*\)[^\s,"]*|[^\s,"]+')
PAIR = re.compile(r"\(([^()]*)\)OVERLAP_[A-Z]_[A-Z]", re.ASCII | re.IGNORECASE)  # what overlaps is said inside
ACTION = re.compile(
    r"(\d+)(?:([FBIWRU])(\d+)|(?:SEND_F|RECV_F|SEND_B|RECV_B|UNSHARD|RESHARD|REDUCE_GRAD)\d*)",
    re.ASCII | re.IGNORECASE,
)
Block: TypeAlias = tuple[int, int]
"""A stage and a micro-batch."""


class Parsed(NamedTuple):
    """What was read: the ``schedule``, and how many transfers and sharding actions were ``left_out`` of it."""

    schedule: Schedule
    left_out: int


def write(schedule: Schedule) -> str:
    r"""Write the order of ``schedule`` as text, a line per device.

    The rows alone: that a schedule has ``streams`` or ``update_every`` is not part of the notation.

    >>> write(Schedule(((Op(0, "F", 0), Op(0, "F", 1)), (Op(1, "F", 0), Op(1, "F", 1)))))
    '0F0 0F1\n1F0 1F1'
    """
    return "\n".join(" ".join(map(str, row)) or f"{device}:" for device, row in enumerate(schedule.rows))


def write_csv(schedule: Schedule) -> str:
    r"""Write the order of ``schedule`` as CSV, a row per device; PyTorch's ``_load_csv`` reads it.

    Not so R, U and overlapped pairs other than F and B: those PyTorch does not know.

    >>> write_csv(Schedule(((Op(0, "F", 0), Op(0, "F", 1)), (Op(1, "F", 0), Op(1, "F", 1)))))
    '0F0,0F1\n1F0,1F1\n'
    """
    return "".join((",".join(map(str, row)) or '""') + "\n" for row in schedule.rows)


@lru_cache(maxsize=2)
def parse(text: str) -> Parsed:
    r"""Read an order from text or CSV.

    Raises
    ------
    ScenarioError
        For what is no order (with line and column, counted from 1) and for an order that is not complete (see check).

    Examples
    --------
    >>> parse("0F0,0F1\n,1F0,1F1").schedule == parse("Rank 0: 0F0 0F1\nRank 1: 1F0 1F1").schedule
    True
    >>> parse("0F0 0SEND_F0\n1RECV_F0 1F0").left_out
    2
    """
    if next(islice(re.finditer(r"\d[A-Za-z]", text), MOST_ENTRIES, None), None):
        raise ScenarioError(FIELD, "notation.too_long", {"high": MOST_ENTRIES})
    rows: list[tuple[Cell, ...]] = []
    left_out = 0
    for line, content in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if not content.strip() or content.lstrip().startswith("#"):
            continue
        if len(rows) == MOST_DEVICES:
            raise ScenarioError(FIELD, "notation.devices", {"high": MOST_DEVICES})
        label = LABEL.match(content)
        if label and int(label[1]) != len(rows):
            raise ScenarioError(FIELD, "notation.label", {"line": line, "given": label[1], "wanted": str(len(rows))})
        entries = ENTRY.finditer(content, label.end() if label else 0)
        cells = [_cell(entry[0], line, entry.start() + 1) for entry in entries]
        rows.append(tuple(cell for cell in cells if cell))
        left_out += cells.count(None)
    schedule = Schedule(tuple(rows))
    check(schedule)
    return Parsed(schedule, left_out)


@lru_cache(maxsize=1 << 15)
def cell(text: str) -> Cell | None:
    """Read one operation or overlapped pair; None for a transfer.

    Raises
    ------
    ScenarioError
        For what is neither.

    Examples
    --------
    >>> cell("2F0")
    Op(stage=2, kind='F', micro_batch=0)
    """
    return _cell(text, 1, 1)


def _cell(text: str, line: int, column: int) -> Cell | None:
    """Read one entry of a line; None for a transfer."""
    pair = PAIR.fullmatch(text)
    if not pair:
        return _op(text, line, column)
    parts = re.finditer(r"[^\s;]+", pair[1])
    match [_op(part[0], line, column + 1 + part.start()) for part in parts]:
        case [Op() as first, Op() as second]:
            return Pair(first, second)
    raise _misplaced("notation.pair", text, line, column)


def _op(text: str, line: int, column: int) -> Op | None:
    """Read one operation; None for a transfer."""
    action = ACTION.fullmatch(text)
    if not action:
        raise _misplaced("notation.unknown", text, line, column)
    stage, kind, micro_batch = action.groups()
    if kind is None:
        return None
    for number, last, key in ((stage, LAST_STAGE, "stage"), (micro_batch, LAST_MICRO_BATCH, "micro_batch")):
        if len(number) > 9 or int(number) > last:  # int() refuses thousands of digits
            raise _misplaced(f"notation.{key}", text, line, column, high=last)
    return Op(int(stage), kind.upper(), int(micro_batch))


def _misplaced(key: str, text: str, line: int, column: int, **more: int) -> ScenarioError:
    given = text if len(text) <= 40 else text[:39] + "…"
    return ScenarioError(FIELD, key, {"line": line, "column": column, "given": given, **more})


def check(schedule: Schedule) -> None:
    """Refuse an order that is not complete.

    Every stage runs every micro-batch forward, once. In training (anything but F occurs) it also runs it backward,
    once: as a whole, B, or in two parts, I and W. R and U may be there or not, but not twice.

    Raises
    ------
    ScenarioError
        For the first of: an operation twice, no operation, a backward both whole and in parts, one part alone,
        operations missing. Operations are named as in the notation, counted from 0.
    """
    home: dict[Op, int] = {}
    for device, row in enumerate(schedule.rows):
        for op in (op for cell in row for op in cell.ops):
            if op in home:
                key = "notation.twice" if home[op] == device else "notation.twice_apart"
                raise ScenarioError(FIELD, key, {"op": str(op), "device": home[op], "home": device})
            home[op] = device
    if not home:
        raise ScenarioError(FIELD, "notation.empty")
    blocks: dict[str, set[Block]] = {kind: set() for kind in "FBIW"}
    for stage, kind, micro_batch in home:
        blocks.setdefault(kind, set()).add((stage, micro_batch))
    forward, whole, inputs, weights = (blocks[kind] for kind in "FBIW")
    _check_backwards(whole, inputs, weights)
    is_training = len(home) > len(forward)
    kinds = "" if not is_training else "IW" if inputs and not whole else "B"
    _check_none_missing(schedule, forward, whole | inputs, kinds)


def _check_backwards(whole: set[Block], inputs: set[Block], weights: set[Block]) -> None:
    """Refuse a backward that is there both whole and in parts, or as one part of the two."""
    for key, kind, other, blocks in (
        ("notation.whole_and_part", "B", "I", whole & inputs),
        ("notation.whole_and_part", "B", "W", whole & weights),
        ("notation.half", "I", "W", inputs - weights),
        ("notation.half", "W", "I", weights - inputs),
    ):
        if blocks:
            stage, micro_batch = min(blocks)
            params = {"op": str(Op(stage, kind, micro_batch)), "other": str(Op(stage, other, micro_batch))}
            raise ScenarioError(FIELD, key, params)


def _check_none_missing(schedule: Schedule, forward: set[Block], backward: set[Block], kinds: str) -> None:
    """Refuse gaps; ``kinds`` are the letters of the backward that each stage and micro-batch needs ("": none).

    Gaps are counted and not listed: a single ``4095F65535`` leaves millions of them.
    """

    def missing() -> Iterator[Op]:
        """First what lacks its other half, which is most likely what went wrong, then what lacks both."""
        yield from (Op(stage, "F", micro_batch) for stage, micro_batch in sorted(backward - forward))
        yield from (Op(stage, kind, micro_batch) for stage, micro_batch in sorted(forward - backward) for kind in kinds)
        for stage, micro_batch in product(range(schedule.stages), range(schedule.micro_batches)):
            if (stage, micro_batch) not in forward and (stage, micro_batch) not in backward:
                yield from (Op(stage, kind, micro_batch) for kind in "F" + kinds)

    n = schedule.stages * schedule.micro_batches * (1 + len(kinds)) - len(forward) - len(backward) * len(kinds)
    if n:
        ops = [str(op) for op in islice(missing(), NAMED)] + ["…"] * (n > NAMED)
        raise ScenarioError(FIELD, "notation.missing", {"n": n, "ops": ops})
