"""Hypothesis strategies for scenarios, over every schedule that is filed."""

from fractions import Fraction

from hypothesis import strategies as st

from pipesched import Scenario, ScenarioError, run
from pipesched.notation import write
from pipesched.schedules import REGISTRY, arrange

TIMES = ["1", "2", "3", "0.5", "0.601", "18.522", "1/3", "7/6", "1,25"]
NO_TIME_TOO = ["0", *TIMES]
TRAINED = tuple(name for name, entry in REGISTRY.items() if entry.family not in ("inference", "own"))
GREEDY = ("zb_auto", "wave")
"""Schedules whose order depends on the times: they are only as good as a greedy is."""


def settled(settings):
    """Return a scenario that can be run, by the repairs that a refusal offers where ``settings`` do not go together."""
    for _ in range(4):
        scenario = Scenario(**settings)
        try:
            run(scenario)
        except ScenarioError as error:
            settings = {**settings, **error.repairs[-1]}
        else:
            return scenario
    raise AssertionError(f"no repair of {settings} works")


def example(schedule, devices, micro_batches, **settings):
    """Return a scenario of about this size, for ``order`` that of 1F1B."""
    size = {"devices": devices, "micro_batches": micro_batches}
    if schedule == "order":
        settings["order"] = write(arrange(Scenario(schedule="1f1b", **size)))
    return settled({"schedule": schedule, **size, **settings})


@st.composite
def layouts(draw, stages):
    """Draw a split by hand that holds together: layer counts or Megatron-LM's layout, and how many layers it has."""
    counts = draw(st.lists(st.integers(0, 5), min_size=stages, max_size=stages))
    counts[draw(st.integers(0, stages - 1))] += 1
    if draw(st.booleans()):
        return draw(st.sampled_from([",", "; ", " "])).join(map(str, counts)), sum(counts)
    stacks = [draw(st.sampled_from([f"t*{n}", "t" * n, f"(t)*{n},"])) if n else "" for n in counts]
    return "E" + "|".join(stacks) + draw(st.sampled_from(["L", "mL"])), sum(counts)


@st.composite
def sources(draw, stages, micro_batches, split=True):
    """Draw where the times of the stages come from, besides the durations: layers, a constant batch, tensor lanes."""
    settings = {"tensor": draw(st.sampled_from([1, 1, 2, 3, 8]))}
    settings["all_reduce"] = draw(st.sampled_from(NO_TIME_TOO))
    settings["all_reduce_latency"] = draw(st.sampled_from(["0", "0.25"]))
    if draw(st.booleans()):
        settings["batch"] = micro_batches * draw(st.integers(1, 3)) + draw(st.integers(0, 3))
        settings["overhead"] = draw(st.sampled_from(NO_TIME_TOO))
        settings["per_sample"] = draw(st.sampled_from(TIMES))
    if split:
        settings["split"] = draw(st.sampled_from(["even", "balanced", "hand"]))
        settings["embedding"] = draw(st.sampled_from(["0", "0.5", "3"]))
        settings["head"] = draw(st.sampled_from(["0", "7/6", "4"]))
        settings["layers"] = draw(st.integers(1, 20))
        if settings["split"] == "hand":
            settings["layout"], settings["layers"] = draw(layouts(stages))
    return settings


@st.composite
def scenarios(draw, schedules=tuple(REGISTRY), times=TIMES, uneven=True, extras=True):
    """Draw a scenario that runs: M from 1 on, multiples of K or not, groups of any size that is no deadlock.

    ``uneven``: stages may differ; ``extras``: what is off by default (recomputation, updates, blocking sends,
    overlapping) may be on.
    """
    devices = draw(st.integers(1, 5))
    settings = {
        "schedule": draw(st.sampled_from(schedules)),
        "devices": devices,
        "micro_batches": draw(st.integers(1, 8) | st.sampled_from([2 * devices, 3 * devices])),
        "chunks": draw(st.integers(1, 4)),
        "tokens": draw(st.integers(1, 4)),
        "group": draw(st.none() | st.integers(1, 9)),
        "memory_limit": draw(st.none() | st.integers(1, 11)),
        "forward": draw(st.sampled_from(times)),
        "input_grad": draw(st.sampled_from(NO_TIME_TOO)),
        "weight_grad": draw(st.sampled_from(NO_TIME_TOO)),
        "comm": draw(st.sampled_from(NO_TIME_TOO)),
        "times_of": draw(st.sampled_from(["device", "stage"])),
    }
    if extras:
        settings["recompute"] = draw(st.sampled_from(["none", "none", "early", "late"]))
        settings["update"] = draw(st.sampled_from(["0", "0", *TIMES]))
        settings["send"] = draw(st.sampled_from(["free", "free", "blocking"]))
        settings["overlap"] = draw(st.none() | st.sampled_from(TIMES))
    if settings["schedule"] == "order":
        settings["order"] = write(run(draw(scenarios(schedules=[*TRAINED, "forward"]))).timeline.schedule)
    base = settled(settings)
    stages = arrange(base).stages
    source = draw(sources(stages, base.micro_batches, draw(st.booleans()))) if extras and uneven else {}
    if uneven and "split" not in source and draw(st.booleans()):
        settings["stage_times"] = draw(st.lists(st.sampled_from(times), min_size=stages, max_size=stages))
    if uneven and draw(st.booleans()):
        settings["slow_factor"] = draw(st.sampled_from(["1.5", "2", "4", "10/3"]))
        settings["slow_stage"] = draw(st.none() | st.integers(1, stages))
    uneven_settings = {
        name: settings[name] for name in ("stage_times", "slow_factor", "slow_stage") if name in settings
    }
    return settled({**base.settings(), **source, **uneven_settings})


TIDY = ["1", "2", "0.5", "7/6"]


@st.composite
def tidy(draw, schedules):
    """Draw a scenario as closed forms want it: equal stages, most often f = i = w and no latency, often a large M."""
    name, exact = draw(st.sampled_from(list(schedules))), draw(st.booleans())
    if name == "order":
        return draw(scenarios([name]))
    chosen = {"schedule": name, "devices": draw(st.integers(1, 6)), "chunks": draw(st.integers(1, 4))}
    devices = settled({**chosen, "micro_batches": 48}).devices
    unit = draw(st.sampled_from(TIDY))
    settings = {
        **chosen,
        "devices": devices,
        "tokens": draw(st.integers(1, 4)),
        "times_of": draw(st.sampled_from(["device", "stage"])),
        **{field: unit for field in ("forward", "input_grad", "weight_grad")},
    }
    if exact:
        settings["micro_batches"] = devices * draw(st.integers(3, 6))
    else:
        settings["micro_batches"] = draw(st.integers(1, 8) | st.integers(2 * devices - 1, 3 * devices + 4))
        settings["input_grad"] = draw(st.sampled_from([unit, unit, "0.5"]))
        settings["weight_grad"] = draw(st.sampled_from([unit, "0", "0.25", "0.5"]))
        settings["comm"] = draw(st.sampled_from(["0", "0", "0.25", "2"]))
        settings["recompute"] = draw(st.sampled_from(["none", "none", "early", "late"]))
        settings["send"] = draw(st.sampled_from(["free", "free", "blocking"]))
        back, both = (
            Fraction(unit) + Fraction(settings["weight_grad"]),
            2 * Fraction(unit) + Fraction(settings["weight_grad"]),
        )
        settings["overlap"] = draw(st.sampled_from([None, back, both, *TIDY]))
    return settled(settings)
