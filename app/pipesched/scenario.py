"""What a person typed goes in, a Scenario comes out, or a ScenarioError that names the field.

A Scenario holds every setting that can be turned, under the one name it has everywhere: form field, URL key, JSON key
and (with dashes) command-line option. Its limits stand beside each field, once, and all those places read them here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Self

from pipesched.layers import Part, balanced, check, even, parse
from pipesched.model import Costs, ScenarioError
from pipesched.reading import Number, brief, exact_number, list_text, plain, split_list
from pipesched.tensor import all_reduce_time


class Setting(NamedTuple):
    """What a field accepts. ``low`` and ``high`` are inclusive; of a text they limit its length."""

    kind: Literal["name", "whole", "number", "numbers", "choice", "text"]
    low: Number = 0
    high: Number = 0
    optional: bool = False
    options: tuple[str, ...] = ()


def _setting(default: Any, kind: Any, low: Number = 0, high: Number = 0, *, optional: bool = False) -> Any:
    return field(default=default, metadata={"setting": Setting(kind, low, high, optional)})


def _choice(*options: str) -> Any:
    return field(default=options[0], metadata={"setting": Setting("choice", options=options)})


SHORTEST, LONGEST = Fraction(1, 1000), 1_000_000
WORK = ("forward", "input_grad", "weight_grad")
PER_KIND = tuple(f"{name}_times" for name in WORK)


@dataclass(frozen=True, repr=False)
class Scenario:
    """Everything that can be turned. Values may be given as numbers or as text (``"1.5"``, ``"1,5"``, ``"3/2"``).

    Attributes
    ----------
    schedule
        Name of the schedule, one of ``pipesched.schedules.REGISTRY``.
    devices
        K, 1 to 64.
    chunks
        v, stages per device in the schedules that let it be chosen; S = v K.
    micro_batches
        M, 1 to 1024. In ``decode`` the streams, in ``terapipe`` the slices of a sequence.
    tokens
        n, the tokens that each stream of ``decode`` makes.
    group
        g, how many micro-batches run through a chunk before the next chunk has its turn (interleaved schedules), or
        how many lie between two updates (``pipedream_2bw``); None: the schedule's own choice.
    memory_limit
        The most activations that ``zb_auto`` keeps on a device, in micro-batches; None: K.
    forward, input_grad, weight_grad
        Duration of F, I and W, in any unit of time; a full backward B takes ``input_grad + weight_grad``.
    times_of
        Whose durations these are: of all layers of a ``device``, which its v chunks share evenly, or of a ``stage``.
        Where ``stage_times`` are given they are those of a stage.
    overlap
        Duration of a forward and a full backward run as one block (DualPipe); None: their sum.
    recompute
        ``none``; ``early``: activations are dropped and a forward is run again (R) before each backward, as soon as the
        device is free; ``late``: every backward starts with that, after its gradient has arrived.
    update
        Duration of the weight update of a stage; drawn as U where it is not 0 or where updates are part of the order.
    slow_stage
        Which stage is slowed down, counted from 1 as a person does; None: the middle one, ``(S + 1) // 2``.
    slow_factor
        How many times longer everything on that stage takes, 1 (off) to 4.
    stage_times
        One factor per stage on all its durations, or None: all 1.
    forward_times, input_grad_times, weight_grad_times
        One duration per stage in place of ``forward``, ``input_grad`` or ``weight_grad``, or None. As with
        ``stage_times``, durations are then those of a stage.
    comm
        Latency of a hop between two devices.
    send
        ``free``: a hop occupies neither device; ``blocking``: it holds up the sender.
    split
        ``none``; or how the layers of the model make the stages: ``even``, ``balanced`` (the largest stage as small as
        can be) or by ``hand``. The durations are then those of one layer, and a stage takes as many of them as it has.
    layers
        L, transformer layers, 1 to 1024.
    embedding, head
        How many layers' time the embedding, on the first stage, and the head with the loss, on the last one, take.
    layout
        The split by hand: layer counts or Megatron-LM's layout (``pipesched.layers.parse``).
    batch
        B, samples that the M micro-batches share, B/M each; the durations are then those of one sample and are taken
        ``overhead + per_sample * B/M`` times. None: a micro-batch has the same size however many there are. In
        ``decode`` the streams, in ``terapipe`` the tokens that are shared out.
    overhead, per_sample
        a and c of the time of a micro-batch of b samples, t(b) = a + c b, in the durations given.
    tensor
        t, how many devices share each stage; its work takes 1/t of the time and its all-reduces come on top.
    all_reduce, all_reduce_latency
        Time that one layer's activation (b s h elements) takes over a link between those t devices, of one sample where
        there is a ``batch``, and the latency of a step of the ring (``pipesched.tensor``). Two all-reduces per layer
        forward, two backward; where layers are not split, the plain durations are those of one layer.
    order
        The order of the schedule ``order``, in the notation of ``pipesched.notation``.
    hidden_size, sequence_length, heads
        h, s and a of a Transformer of L ``layers``, to say in bytes what its activations take (``pipesched.profiles``);
        None: not said.
    micro_batch_size
        b, the sequences in a micro-batch; it matters to the bytes alone.
    precision
        Bits of a value that is kept: ``16``, ``32`` or ``8``.

    Raises
    ------
    ScenarioError
        For a value outside its limits; nothing is clamped.

    Examples
    --------
    >>> Scenario(devices=4, forward="1,5")
    Scenario(devices=4, forward='1.5')
    >>> Scenario(devices=65)
    Traceback (most recent call last):
        ...
    pipesched.model.ScenarioError: Devices K: needs a whole number from 1 to 64, not 65.
    """

    schedule: str = _setting("forward", "name")
    devices: int = _setting(3, "whole", 1, 64)
    chunks: int = _setting(2, "whole", 1, 8)
    micro_batches: int = _setting(4, "whole", 1, 1024)
    tokens: int = _setting(4, "whole", 1, 256)
    group: int | None = _setting(None, "whole", 1, 1024, optional=True)
    memory_limit: int | None = _setting(None, "whole", 1, 1024, optional=True)
    forward: Number = _setting(1, "number", SHORTEST, LONGEST)
    input_grad: Number = _setting(1, "number", 0, LONGEST)
    weight_grad: Number = _setting(1, "number", 0, LONGEST)
    times_of: str = _choice("device", "stage")
    overlap: Number | None = _setting(None, "number", SHORTEST, LONGEST, optional=True)
    recompute: str = _choice("none", "early", "late")
    update: Number = _setting(0, "number", 0, LONGEST)
    slow_stage: int | None = _setting(None, "whole", 1, 1024, optional=True)
    slow_factor: Number = _setting(1, "number", 1, 4)
    stage_times: tuple[Number, ...] | None = _setting(None, "numbers", SHORTEST, LONGEST, optional=True)
    forward_times: tuple[Number, ...] | None = _setting(None, "numbers", SHORTEST, LONGEST, optional=True)
    input_grad_times: tuple[Number, ...] | None = _setting(None, "numbers", 0, LONGEST, optional=True)
    weight_grad_times: tuple[Number, ...] | None = _setting(None, "numbers", 0, LONGEST, optional=True)
    comm: Number = _setting(0, "number", 0, LONGEST)
    send: str = _choice("free", "blocking")
    split: str = _choice("none", "even", "balanced", "hand")
    layers: int = _setting(24, "whole", 1, 1024)
    embedding: Number = _setting(0, "number", 0, 1024)
    head: Number = _setting(0, "number", 0, 1024)
    layout: str | None = _setting(None, "text", 0, 4096, optional=True)
    batch: int | None = _setting(None, "whole", 1, LONGEST, optional=True)
    overhead: Number = _setting(0, "number", 0, LONGEST)
    per_sample: Number = _setting(1, "number", SHORTEST, LONGEST)
    tensor: int = _setting(1, "whole", 1, 64)
    all_reduce: Number = _setting(0, "number", 0, LONGEST)
    all_reduce_latency: Number = _setting(0, "number", 0, LONGEST)
    order: str | None = _setting(None, "text", 0, 1_000_000, optional=True)
    hidden_size: int | None = _setting(None, "whole", 1, 1_000_000, optional=True)
    sequence_length: int | None = _setting(None, "whole", 1, 10_000_000, optional=True)
    micro_batch_size: int = _setting(1, "whole", 1, 1_000_000)
    heads: int | None = _setting(None, "whole", 1, 10_000, optional=True)
    precision: str = _choice("16", "32", "8")

    def __post_init__(self) -> None:
        for name, setting in SETTINGS.items():
            object.__setattr__(self, name, _read(name, setting, getattr(self, name)))

    def __repr__(self) -> str:
        return f"Scenario({', '.join(f'{name}={value!r}' for name, value in self.changed().items())})"

    def factors(self, stages: int) -> tuple[Number, ...]:
        """Return how many times longer each of ``stages`` takes than the plain durations: of a layer, if split.

        Raises
        ------
        ScenarioError
            If times per stage have another length or layers are split too, ``slow_stage`` is not there, or the layers
            do not make ``stages``.
        """
        slowness = self.slowness(stages)
        if parts := self.parts(stages):
            weights = [part.weight(self.embedding, self.head) for part in parts]
        else:
            weights = list(self.stage_times or [1] * stages)
        return tuple(weight * slow for weight, slow in zip(weights, slowness, strict=True))

    def slowness(self, stages: int) -> list[Number]:
        """Return ``slow_factor`` for the slow one of ``stages``, 1 for the others.

        Raises
        ------
        ScenarioError
            If ``slow_stage`` is not there, or one of the times per stage has another length.
        """
        if self.slow_stage is not None and self.slow_stage > stages:
            limits = {"low": 1, "high": stages, "given": self.slow_stage}
            raise ScenarioError("slow_stage", "error.whole", limits, [{"slow_stage": ""}])
        for name, times in self.per_stage().items():
            if len(times) != stages:
                given = len(times)
                fitted = (*times, *[times[-1] if name in PER_KIND else 1] * stages)[:stages]
                repairs = [*self._devices_for(given, stages), {name: list_text(fitted)}]
                raise ScenarioError(name, "error.stage_times", {"n": given, "stages": stages}, repairs)
        slow = (self.slow_stage or (stages + 1) // 2) - 1
        return [self.slow_factor if stage == slow else 1 for stage in range(stages)]

    def per_stage(self) -> dict[str, tuple[Number, ...]]:
        """Return the settings given that hold one number per stage."""
        given = {name: getattr(self, name) for name in ("stage_times", *PER_KIND)}
        return {name: times for name, times in given.items() if times is not None}

    def _devices_for(self, given: int, stages: int) -> list[dict[str, str]]:
        """Return the repair that makes ``given`` stages of ``stages``, if some number of devices does."""
        chunks = max(1, stages // self.devices)
        fits = given % chunks == 0 and 1 <= given // chunks <= SETTINGS["devices"].high and self.schedule != "order"
        return [{"devices": str(given // chunks)}] if fits else []

    def parts(self, stages: int) -> tuple[Part, ...] | None:
        """Return what each of ``stages`` holds, None where layers are not split.

        Raises
        ------
        ScenarioError
            If times per stage are given as well, or the ``layout`` loses or doubles layers, makes another number of
            stages, is not there or cannot be read.
        """
        if self.split == "none":
            return None
        if given := self.per_stage():
            repairs = [{"split": "none"}, dict.fromkeys(given, "")]
            raise ScenarioError("split", "error.split_and_times", {}, repairs)
        if self.split == "balanced":
            return balanced(self.layers, stages, self.embedding, self.head)
        evenly = even(self.layers, stages)
        if self.split == "even":
            return evenly
        instead = {"layout": list_text(tuple(part.layers for part in evenly))}
        if self.layout is None:
            raise ScenarioError("layout", "error.layout.none", {"stages": stages}, [instead])
        try:
            parts = parse(self.layout)
        except ScenarioError as error:
            raise ScenarioError("layout", error.message.key, error.message.params, [instead]) from error
        if fault := check(parts, self.layers, stages):
            found = sum(part.layers for part in parts)
            known = [{"layers": str(found)}] if 1 <= found <= SETTINGS["layers"].high and found != self.layers else []
            right = self._devices_for(len(parts), stages) if len(parts) != stages else known
            raise ScenarioError("layout", fault.message.key, fault.message.params, [*right, instead])
        return parts

    def size(self) -> tuple[Number, Number]:
        """Return b, the samples of a micro-batch, and t(b), how many times the plain durations it takes; 1, 1 if off.

        Raises
        ------
        ScenarioError
            If there are more micro-batches than samples.
        """
        if self.batch is None or self.schedule == "order":
            return 1, 1
        if self.batch < self.micro_batches:
            counts = {"n": self.batch, "given": self.micro_batches}
            repairs = [{"micro_batches": str(self.batch)}, {"batch": str(self.micro_batches)}]
            raise ScenarioError("batch", "error.batch", counts, repairs)
        samples = Fraction(self.batch, self.micro_batches)
        return samples, self.overhead + self.per_sample * samples

    def share(self, stages: int, devices: int) -> Fraction:
        """Return which part of the durations falls to one of ``stages``: 1/v of a device's, else all."""
        of_device = self.times_of == "device" and not self.per_stage() and self.split == "none"
        return Fraction(devices, stages) if of_device and stages > devices else Fraction(1)

    def overlap_share(self) -> Fraction:
        """Return how long an overlapped pair takes, as a share of its two operations one after the other."""
        together = self.forward + self.input_grad + self.weight_grad
        return Fraction(1) if self.overlap is None else Fraction(self.overlap, together)

    def reductions(self) -> Fraction:
        """Return how long the all-reduces of one layer and one direction take: two of them (``pipesched.tensor``)."""
        samples, _ = self.size()
        return 2 * all_reduce_time(self.tensor, self.all_reduce * samples, self.all_reduce_latency)

    def costs(self, stages: int, devices: int) -> Costs:
        """Return the exact costs that these settings mean for ``stages`` spread over ``devices``.

        Raises
        ------
        ScenarioError
            As ``factors`` and ``size``.
        """
        share, (_, size) = self.share(stages, devices), self.size()
        factors = [Fraction(factor * share, self.tensor) for factor in self.factors(stages)]
        blocks: Sequence[Number] = [factor * self.tensor for factor in factors]
        if parts := self.parts(stages):
            blocks = [part.blocks * slow for part, slow in zip(parts, self.slowness(stages), strict=True)]
        talk = [block * self.reductions() for block in blocks]
        given = {name: getattr(self, f"{name}_times") or [getattr(self, name)] * stages for name in WORK}
        forward, input_grad, weight_grad = (
            [time * size * factor for time, factor in zip(given[name], factors, strict=True)] for name in WORK
        )
        return Costs.exact(
            [time + more for time, more in zip(forward, talk, strict=True)],
            [time + more for time, more in zip(input_grad, talk, strict=True)],
            weight_grad,
            self.comm,
            update=[self.update * factor for factor in factors],
            recompute_late=self.recompute == "late",
            overlap=self.overlap_share(),
            blocks=self.send == "blocking",
            all_reduce=talk,
            members=self.tensor,
        )

    def changed(self) -> dict[str, Any]:
        """Return the settings that differ from their default, as ints and text that read back as the same value."""
        return {item.name: plain(value) for item in fields(self) if (value := getattr(self, item.name)) != item.default}

    def settings(self) -> dict[str, Any]:
        """Return every setting as JSON can hold it; numbers that are not whole become text that reads back exactly."""
        return {item.name: plain(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> tuple[Self, list[ScenarioError]]:
        """Make a scenario of whatever a URL or form holds; each field that cannot be used falls back to its default.

        Returns the scenario and one error per field that fell back, unknown names included. Whether the settings go
        together is for ``schedules.arrange`` to say.
        """
        errors: list[ScenarioError] = []
        kept: dict[str, Any] = {}
        for name, value in values.items():
            if name not in SETTINGS:
                errors.append(ScenarioError(name, "error.unknown_field", {"given": name}))
                continue
            try:
                kept[name] = _read(name, SETTINGS[name], value)
            except ScenarioError as error:
                errors.append(error)
        return cls(**kept), errors


SETTINGS: dict[str, Setting] = {item.name: item.metadata["setting"] for item in fields(Scenario)}
DEFAULTS: dict[str, Any] = {item.name: item.default for item in fields(Scenario)}


def _read(name: str, setting: Setting, value: Any) -> Any:
    """Turn ``value`` (text or a number) into what the field holds, or say why not."""
    if setting.optional and (value is None or value == () or (isinstance(value, str) and not value.strip())):
        return None
    if setting.kind == "name":
        return brief(value)
    if setting.kind == "text":
        return _text(name, setting, value)
    if setting.kind == "choice":
        if value not in setting.options:
            limits = {"names": ", ".join(setting.options), "given": brief(value)}
            raise ScenarioError(name, "error.schedule", limits)
        return value
    if setting.kind == "numbers":
        parts = split_list(value) if isinstance(value, str) else value if isinstance(value, tuple | list) else ["?"]
        return tuple(_number(name, setting, part) for part in parts)
    return _number(name, setting, value)


def _text(name: str, setting: Setting, value: Any) -> str:
    """Read a text of several lines: no blank lines at its ends, no blanks around a line."""
    text = str(value)
    if len(text) > setting.high:
        raise ScenarioError(name, "error.long", {"high": setting.high, "given": len(text)})
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _number(name: str, setting: Setting, value: Any) -> Number:
    """Read one number exactly and hold it against the limits of its field."""
    exact, whole = exact_number(value), setting.kind == "whole"
    if exact is None or (whole and exact.denominator != 1) or not setting.low <= exact <= setting.high:
        limits = {"low": setting.low, "high": setting.high, "given": brief(value)}
        raise ScenarioError(name, "error.whole" if whole else "error.number", limits)
    return int(exact) if exact.denominator == 1 else exact
