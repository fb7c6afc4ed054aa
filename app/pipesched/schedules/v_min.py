"""V-Min: a V of two chunks per device whose micro-batches leave as soon as they can, for the least memory."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, schedule
from pipesched.schedules.building_block import repeat


@schedule(
    family="zero_bubble",
    source="Controllable memory (Qi et al. 2024, arXiv 2405.15362), s3, V-Min, without re-ordering",
    since=2024,
    uses=("times_of",),
    synonyms=("V-Min", "Vmin", "controllable memory"),
)
def v_min(scenario: Scenario) -> Rows:
    """A V of two chunks per device: forward and backward run through without a stop, for a third of 1F1B's memory.

    A micro-batch runs down and up the V without a stop, forward and then backward; two idle slots at the turn keep the
    blocks apart where K is a multiple of 3. With M large enough every device holds 2 floor((K+4)/3) activations at
    most, about a third of 1F1B's. What is done with the slots: building_block.py.
    """
    devices = scenario.devices
    turn = 2 if devices % 3 == 0 else 0

    def block(device: int) -> tuple[int, int, int, int]:
        back = 2 * devices - 1 - device
        return device, back, 2 * devices + turn + device, 2 * devices + turn + back

    return repeat(devices, scenario.micro_batches, block)
