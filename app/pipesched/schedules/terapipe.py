"""TeraPipe: the tokens of one sequence are the micro-batches."""

from pipesched.scenario import Scenario
from pipesched.schedules import BYTES, Rows, backwards, forwards, schedule


@schedule(
    family="synchronous",
    source="TeraPipe (Li et al. 2021, arXiv 2102.07988), s3",
    since=2021,
    ignores=BYTES,  # a slice keeps scores against all slices before it, which the formula does not know
    synonyms=("token-level", "sequence pipeline", "slices"),
)
def terapipe(scenario: Scenario) -> Rows:
    """M slices of one sequence flow as micro-batches do: a causal slice needs those before it, never those after it.

    Backward the slices go in the opposite order, because the gradient of a slice collects what later slices return.
    """
    slices = range(scenario.micro_batches)
    for stage in range(scenario.devices):
        yield forwards(stage, slices) + backwards(stage, reversed(slices))
