"""Put the guard in front of a Python process before anything else runs in it.

Room: loaded by the interpreter itself, because `lanes run` puts this folder first on PYTHONPATH; nobody imports it.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would double the start-up time


def _install_guard() -> None:
    root = os.path.dirname(os.path.dirname(_HERE))  # noqa: PTH120 - as above
    sys.path.insert(0, root)  # the guard that belongs to this file, whatever else is called `lanes` on the path
    try:
        from lanes.guard import install_from_environment

        install_from_environment()
        if os.environ.get("LANES_REACH"):
            from lanes.reach import install_in_child

            install_in_child()
    except Exception as error:  # noqa: BLE001 - whatever it is, a process of a lane must not run without its guard
        os.write(2, f"the guard of this lane cannot be installed: {error!r}\n".encode())
        os._exit(3)
    finally:
        sys.path.remove(root)


def _run_next_sitecustomize() -> None:
    elsewhere = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]  # noqa: PTH100 - as above
    spec = PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)


if os.environ.get("LANES_GUARD"):
    _install_guard()
_run_next_sitecustomize()
