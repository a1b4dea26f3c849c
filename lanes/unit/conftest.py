"""How the properties of this lane are searched.

Room: pytest loads it.
"""

from __future__ import annotations

from hypothesis import Phase, settings

# Explaining a failure costs many seconds each time, and whoever breaks a guard on purpose pays it for every property.
_PHASES = tuple(phase for phase in Phase if phase is not Phase.explain)

# No deadline: how long an example takes says how busy the machine is, or that coverage watches it.
settings.register_profile("lanes", phases=_PHASES, deadline=None)
settings.load_profile("lanes")
