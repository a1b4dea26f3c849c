"""Which signals a program acts on.

Room: the surfaces come in, before they take signals over.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable


def heard_signals(numbers: Iterable[signal.Signals]) -> tuple[signal.Signals, ...]:
    """All of them but a SIGHUP that the process was started to ignore: that is what nohup is for."""
    is_kept_up = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return tuple(number for number in numbers if not (is_kept_up and number is signal.SIGHUP))
