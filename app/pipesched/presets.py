"""Figures of the literature as scenarios: what a paper drew, with every duration, to be opened and compared.

Each preset says what it reproduces (``preset.<name>`` in the locales), where it was printed, and the settings.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pipesched.model import Op, Schedule
from pipesched.notation import write


class Preset(NamedTuple):
    """``settings`` of Scenario that reproduce the figure of ``source``."""

    name: str
    source: str
    settings: Mapping[str, Any]


def _reversed_gpipe(devices: int, count: int) -> str:
    """Return GPipe as its figure draws it, the backwards in reverse, which the schedule ``gpipe`` does not do."""
    forwards, backwards = ([Op(0, kind, j) for j in range(count)] for kind in "FB")
    row = forwards + backwards[::-1]
    return write(Schedule(tuple(tuple(op._replace(stage=stage) for op in row) for stage in range(devices))))


UNIT = {"forward": 1, "input_grad": 1, "weight_grad": 1}

PRESETS = (
    Preset("first_view", "GPipe (arXiv 1811.06965), fig. 2", {}),
    Preset("gpipe_2b", "GPipe (arXiv 1811.06965), fig. 2b",
           {"schedule": "sequential", "devices": 4, "micro_batches": 1}),
    Preset("gpipe_2c", "GPipe (arXiv 1811.06965), fig. 2c", {"schedule": "order", "order": _reversed_gpipe(4, 4)}),
    Preset("megatron_3", "Megatron-LM (arXiv 2104.04473), fig. 3",
           {**UNIT, "schedule": "gpipe", "devices": 4, "micro_batches": 8}),
    Preset("megatron_4a", "Megatron-LM (arXiv 2104.04473), fig. 4, top",
           {**UNIT, "schedule": "1f1b", "devices": 4, "micro_batches": 8}),
    Preset("megatron_4b", "Megatron-LM (arXiv 2104.04473), fig. 4, bottom",
           {**UNIT, "schedule": "interleaved_1f1b", "devices": 4, "micro_batches": 8, "chunks": 2}),
    Preset("zb_h1", "Zero Bubble (arXiv 2401.10241), fig. 3, top",
           {**UNIT, "schedule": "zb_h1", "devices": 4, "micro_batches": 8}),
    Preset("zb_h2", "Zero Bubble (arXiv 2401.10241), fig. 3, bottom",
           {**UNIT, "schedule": "zb_h2", "devices": 4, "micro_batches": 8}),
    Preset("zb_v", "Zero Bubble (arXiv 2401.10241v1), fig. 8",
           {**UNIT, "schedule": "zb_v", "devices": 4, "micro_batches": 8, "times_of": "stage"}),
    Preset("chimera", "Chimera (arXiv 2107.06925), fig. 3",
           {"schedule": "chimera", "devices": 4, "micro_batches": 4, "weight_grad": 0}),
    Preset("dualpipe_5", "DeepSeek-V3 (arXiv 2412.19437), fig. 5",
           {**UNIT, "schedule": "dualpipe", "devices": 8, "micro_batches": 20, "overlap": 3}),
)  # fmt: skip
