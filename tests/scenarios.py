"""Hypothesis strategies for scenarios, over every schedule that is filed."""

from hypothesis import strategies as st

from pipesched import Scenario
from pipesched.schedules import REGISTRY

TIMES = ["1", "2", "3", "0.5", "0.601", "18.522", "1/3", "7/6", "1,25"]
NO_TIME_TOO = ["0", *TIMES]


@st.composite
def scenarios(draw, schedules=tuple(REGISTRY), times=TIMES, uneven=True):
    devices = draw(st.integers(1, 5))
    settings = {
        "schedule": draw(st.sampled_from(schedules)),
        "devices": devices,
        "micro_batches": draw(st.integers(1, 8)),
        "forward": draw(st.sampled_from(times)),
        "input_grad": draw(st.sampled_from(NO_TIME_TOO)),
        "weight_grad": draw(st.sampled_from(NO_TIME_TOO)),
        "comm": draw(st.sampled_from(NO_TIME_TOO)),
    }
    if uneven and draw(st.booleans()):
        settings["stage_times"] = draw(st.lists(st.sampled_from(times), min_size=devices, max_size=devices))
    if uneven and draw(st.booleans()):
        settings["slow_factor"] = draw(st.sampled_from(["1.5", "2", "4", "10/3"]))
        settings["slow_stage"] = draw(st.one_of(st.none(), st.integers(1, devices)))
    return Scenario(**settings)
