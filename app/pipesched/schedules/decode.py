"""Token-by-token decoding: why one stream cannot pipeline itself."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, forwards, schedule


@schedule(
    family="inference",
    source="vLLM, RFC 11945: as many batches in flight as there are pipeline stages",
    since=2023,
    uses=("tokens",),
    couples=lambda scenario: {"streams": scenario.micro_batches},
    synonyms=("autoregressive", "generation", "virtual engines", "inference", "streams"),
)
def decode(scenario: Scenario) -> Rows:
    """M streams make n tokens each; a token enters the pipe only after the one before it in its stream has left it.

    Every stage serves the streams in turn. One stream keeps 1/K of the devices busy; M >= K streams fill the pipe.
    """
    passes = range(scenario.micro_batches * scenario.tokens)
    for stage in range(scenario.devices):
        yield forwards(stage, passes)
