"""V-Half: a V of two chunks per device that goes down at half speed, for half the memory and a smaller bubble."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, schedule
from pipesched.schedules.building_block import repeat


@schedule(
    family="zero_bubble",
    source="Controllable memory (Qi et al. 2024, arXiv 2405.15362), s3, V-Half, without re-ordering",
    since=2024,
    uses=("times_of",),
    synonyms=("V-Half", "Vhalf", "controllable memory"),
)
def v_half(scenario: Scenario) -> Rows:
    """A V of two chunks per device that goes down at half speed: half of 1F1B's memory, a smaller bubble than V-Min.

    A micro-batch takes two slots a device on its way down the V and one on its way up, forward and then backward;
    three more slots at the turn keep the blocks apart where K is even. With M large enough every device holds
    2 floor((K+2)/2) activations at most, about half of 1F1B's. What is done with the slots: building_block.py.
    """
    devices = scenario.devices
    turn = 3 if devices % 2 == 0 else 0

    def block(device: int) -> tuple[int, int, int, int]:
        down, up = 2 * device, 3 * devices - 2 - device
        middle = 3 * devices - 1 + turn
        return down, up, middle + down, middle + 1 + up

    return repeat(devices, scenario.micro_batches, block)
