"""A degree of tensor parallelism goes in, what it costs in communication comes out.

Megatron-LM (arXiv 2104.04473, s2.3 and s3.2): t devices share each layer; per layer two all-reduces of b s h elements
run forward and two backward, while nothing of the same micro-batch can be computed. So a stage of n layers takes
t_F(t) = t_F(1)/t + 2 n AR, and t_B likewise. A forward that is run again pays its two again.
"""

from fractions import Fraction

from pipesched.reading import Number


def all_reduce_time(degree: int, transfer: Number, latency: Number) -> Fraction:
    """Return AR, the time of one all-reduce around a ring of ``degree`` devices, in the unit of ``transfer``.

    2(t - 1) steps each carry 1/t of the data: AR = 2(t - 1)/t · ``transfer`` + 2(t - 1) · ``latency``, where
    ``transfer`` is the time all of it (bytes / bandwidth) takes over one link. The latency is this project's addition.

    >>> all_reduce_time(4, 1, 0), all_reduce_time(4, 1, 1), all_reduce_time(1, 5, 5)
    (Fraction(3, 2), Fraction(15, 2), Fraction(0, 1))
    """
    steps = 2 * (degree - 1)
    return Fraction(steps, degree) * transfer + steps * latency


def degrees(devices: int) -> list[int]:
    """List the degrees t = 1, 2, 4, … that divide ``devices``: with p = ``devices``/t stages, p t stays the same.

    >>> degrees(24)
    [1, 2, 4, 8]
    """
    found = [1]
    while devices % (2 * found[-1]) == 0:
        found.append(2 * found[-1])
    return found
