"""A batch that stays the same goes in, how many micro-batches to cut it into comes out.

The cost model is affine, t(b) = a + c b for a micro-batch of b samples: a is paid per micro-batch whatever its size.
Then a plain pipe of K equal stages takes T(M) = (M + K - 1)(a + c B/M) for B samples: more micro-batches shrink the
bubble and pay a more often. The least is at M* = sqrt((K - 1) c B / a), where T* = (sqrt(cB) + sqrt((K - 1) a))^2
(derived from eq. 1 of Megatron-LM, arXiv 2104.04473 s2.2 and s3.3, with t affine; derivation: dT/dM = a - (K-1)cB/M^2).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt

from pipesched.reading import Number


@dataclass(frozen=True)
class Optimum:
    """Where T(M) is least. Times are in the unit of ``a``."""

    star: float
    """M*, as the nearest float; not whole as a rule."""
    least: float
    """T*, T at M*."""
    whole: int
    """The whole number of micro-batches with the least T, the smaller of two equals."""
    divisor: int
    """The same among the numbers that divide the batch into whole samples."""


def total(micro_batches: int, devices: int, batch: int, overhead: Number, per_sample: Number) -> Fraction:
    """Return T(M), exactly.

    >>> total(4, 3, 12, 1, 1)
    Fraction(24, 1)
    """
    return (micro_batches + devices - 1) * (overhead + per_sample * Fraction(batch, micro_batches))


def optimum(devices: int, batch: int, overhead: Number, per_sample: Number, most: int) -> Optimum | None:
    """Return the best number of micro-batches, 1 to ``most`` and at most ``batch``.

    None where there is nothing to weigh: with no overhead or with one device, T only falls or only rises.

    >>> best = optimum(devices=4, batch=48, overhead=1, per_sample=1, most=1024)
    >>> best.star, best.least, best.whole, best.divisor
    (12.0, 75.0, 12, 12)
    """
    if not overhead or not per_sample or devices == 1:
        return None
    work, fill = Fraction(per_sample * batch), Fraction((devices - 1) * overhead)
    square = (devices - 1) * work / overhead
    high = min(batch, most)
    below = min(max(isqrt(int(square)), 1), high)  # floor(sqrt(x)) = isqrt(floor(x)); T falls before M*, rises after
    divisors = [count for count in range(1, high + 1) if batch % count == 0]

    def cost(count: int) -> tuple[Fraction, int]:
        return total(count, devices, batch, overhead, per_sample), count

    return Optimum(
        star=sqrt(square),
        least=float(work + fill) + 2 * sqrt(work * fill),
        whole=min(below, min(below + 1, high), key=cost),
        divisor=min(divisors, key=cost),
    )
