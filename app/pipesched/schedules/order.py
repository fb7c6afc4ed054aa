"""An order of one's own, typed or pasted."""

from pipesched.model import Schedule
from pipesched.notation import parse
from pipesched.scenario import Scenario
from pipesched.schedules import schedule

EXAMPLE = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"


@schedule(
    family="own",
    source="torch.distributed.pipelining, the CSV and text form of its orders",
    uses=("order", "times_of", "overlap"),
    ignores=("devices", "micro_batches", "batch", "overhead", "per_sample"),
    synonyms=("custom", "own", "paste", "CSV"),
)
def order(scenario: Scenario) -> Schedule:
    """The operations of each device in the order you give, in PyTorch's notation, a line per device."""
    return parse(scenario.order or EXAMPLE).schedule
