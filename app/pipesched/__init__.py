"""A pipeline-parallel schedule goes in, its exact timeline and numbers come out.

>>> import pipesched
>>> result = pipesched.run(schedule="forward", devices=3, micro_batches=4)
>>> result.metrics.makespan, result.metrics.sequential_makespan, result.metrics.first_output
(6, 12, 3)
"""

from pipesched.model import Costs, DeadlockError, Interval, Message, Op, ScenarioError, Schedule, Timeline
from pipesched.run import Result, run
from pipesched.scenario import Scenario
from pipesched.simulate import simulate

__version__ = "0.1.0"

__all__ = [
    "Costs",
    "DeadlockError",
    "Interval",
    "Message",
    "Op",
    "Result",
    "Scenario",
    "ScenarioError",
    "Schedule",
    "Timeline",
    "run",
    "simulate",
]
