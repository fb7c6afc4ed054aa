"""How long orders of growing size take: ``python3 tests/benchmark.py`` prints the tables (not a test).

Time per operation of arrange and simulate together, and of the numbers (``measure``), by schedule and size; then the
largest scenario of all, 64 devices and 1024 micro-batches, for every schedule.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "app"))

from pipesched.run import Result, _run, run
from pipesched.scenario import Scenario
from pipesched.schedules import REGISTRY, arrange

DEVICES = 64
SIZES = (1_000, 10_000, 100_000, 1_000_000)
GROWING: dict[str, dict[str, Any]] = {  # chunks, or recomputation and updates, to make many operations
    "gpipe": {},
    "1f1b": {},
    "zb_h1": {},
    "zb_v": {},
    "dualpipe": {},
    "zb_auto": {},
    "wave": {"chunks": 8},
    "interleaved_1f1b": {"chunks": 8},
    "interleaved_zb": {"chunks": 8},
    "1f1b, blocking": {"schedule": "1f1b", "comm": 1, "send": "blocking"},
}


def timed(work: Callable[[], Any], times: int) -> tuple[float, Any]:
    """Return the least seconds of ``times`` runs, and what came out."""
    best, result = float("inf"), None
    for _ in range(times):
        result = None  # what the run before has made is gone when the next one starts
        start = perf_counter()
        result = work()
        best = min(best, perf_counter() - start)
    return best, result


def case(settings: dict[str, Any], times: int) -> tuple[int, float, float]:
    """Return the number of operations, and the microseconds for each to get the timeline and the numbers."""

    def anew() -> Result:
        _run.cache_clear()
        return run(**settings)

    seconds, result = timed(anew, times)
    count = len(result.timeline.position)
    numbers, _ = timed(lambda: Result(result.scenario, result.timeline).metrics, times)
    return count, seconds / count * 1e6, numbers / count * 1e6


def of_size(settings: dict[str, Any], size: int) -> dict[str, Any] | None:
    """Return ``settings`` with devices and micro-batches for about ``size`` operations; None where M has no room."""
    for devices in (4, 8, 16, 32, DEVICES):
        probe = {**settings, "devices": devices, "micro_batches": 4 * devices}
        per_micro_batch = sum(map(len, arrange(Scenario(**probe)).rows)) / (4 * devices)
        count = round(size / per_micro_batch / 2) * 2
        if 2 * devices <= count <= 1024 and (count <= 8 * devices or devices == DEVICES):
            return {**probe, "micro_batches": count}
    return None


def growth() -> None:
    print(f"{'schedule':22}{'operations':>12}{'K':>4}{'M':>6}{'us/op':>9}{'ratio':>7}{'numbers us/op':>15}{'ratio':>7}")
    for name, more in GROWING.items():
        first: tuple[float, float] | None = None
        for size in SIZES:
            settings = of_size({"schedule": name, **more}, size)
            if settings is None:
                continue
            count, whole, numbers = case(settings, 3 if size <= 100_000 else 1)
            first = first or (whole, numbers)
            ratios = whole / first[0], numbers / first[1]
            print(
                f"{name:22}{count:12,}{settings['devices']:4}{settings['micro_batches']:6}"
                f"{whole:9.2f}{ratios[0]:7.2f}{numbers:15.2f}{ratios[1]:7.2f}",
                flush=True,
            )


def largest() -> None:
    print(f"\n{'64 devices, 1024 micro-batches':32}{'operations':>12}{'s':>8}{'numbers s':>11}")
    for name in REGISTRY:
        if name != "order":
            settings = {"schedule": name, "devices": DEVICES, "micro_batches": 1024}
            count, whole, numbers = case(settings, 1)
            print(f"{name:32}{count:12,}{whole * count / 1e6:8.2f}{numbers * count / 1e6:11.2f}", flush=True)


if __name__ == "__main__":
    growth()
    largest()
