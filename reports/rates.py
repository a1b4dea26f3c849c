"""Rates: what a number of passes out of a number of attempts lets one expect of the next one.

Room: pure. The judge and the trend come in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

Z_95 = 1.959964  # the normal quantile of a two-sided interval of 95 %


@dataclass(frozen=True, slots=True)
class Rate:
    """Passes out of attempts.

    Shape: words reads as `4/5, 95 % interval 38 % to 96 %`; without an attempt there is no rate and no interval.
    """

    passed: int
    total: int

    @property
    def interval(self) -> tuple[float, float]:
        """The Wilson score interval for the true rate, which is honest for few attempts and for none or all passed.

        Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
        """
        if not self.total:
            return (0.0, 1.0)
        share, z2 = self.passed / self.total, Z_95 * Z_95
        middle = share + z2 / (2 * self.total)
        spread = Z_95 * math.sqrt(share * (1 - share) / self.total + z2 / (4 * self.total * self.total))
        low, high = ((middle + sign * spread) / (1 + z2 / self.total) for sign in (-1, 1))
        return (max(low, 0.0), min(high, 1.0))

    @property
    def words(self) -> str:
        """The rate with its interval; outward to whole percents, so that rounding promises nothing."""
        if not self.total:
            return "0/0"
        low, high = self.interval
        return f"{self.passed}/{self.total}, 95 % interval {_floor(low)} % to {_ceil(high)} %"


def _floor(share: float) -> int:
    return math.floor(round(share * 100, 9))


def _ceil(share: float) -> int:
    return math.ceil(round(share * 100, 9))
