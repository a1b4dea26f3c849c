"""The guard inside a process: refuses what the lane may not reach, and says who tried.

Room: loaded at interpreter start of every Python process of a lane, so it imports almost nothing and decides by hand.
It is depth D2; the host's own wall is `lanes.namespace`. Nothing switches it off: an audit hook cannot be taken away.
"""

from __future__ import annotations

import _socket
import os
import sys

from lanes.errors import GuardRefused

TYPE_CHECKING = False  # the typing module costs more to load than everything here
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

GUARD_VARIABLE = "LANES_GUARD"
SPOOL_VARIABLE = "LANES_SPOOL"
ITEM_VARIABLE = "LANES_ITEM"
REFUSALS_FILE = "refusals.jsonl"
CANARIES_FILE = "canaries.jsonl"
UNSEEN_FILE = "unseen.jsonl"
PACKAGE_VARIABLE = "LANES_PACKAGE"  # the package that evidence is about; empty where it is about no package
LOOP_PACKAGE = "harness"

CANARY_ADDRESS = ("192.0.2.1", 9)  # RFC 5737, set aside for documentation: no host on earth answers there
CANARY_NAME = "guard-canary.invalid"  # RFC 6761: never resolves
REFUSED = "refused"
NOT_SHOWN = "not shown"

# Calls of the C library that reach outside past every event of the interpreter. Nobody here needs them by hand.
_NATIVE_CALLS = frozenset(
    {
        "connect",
        "getaddrinfo",
        "gethostbyaddr",
        "gethostbyname",
        "gethostbyname2",
        "io_uring_setup",
        "res_query",
        "res_search",
        "sendmmsg",
        "sendmsg",
        "sendto",
        "setns",
        "syscall",
    }
)

_FIXES = {
    "none": "give the client a channel of this lane, or move the test to lanes/offline",
    "loopback": "give the client mock_provider.transport, or a mock provider on 127.0.0.1",
    "providers": "reach a host of lanes/providers.toml, or move the test to a lane without a key",
    "local": "ask the model through channels.local",
}
_RULES = {
    "none": "has no network",
    "loopback": "reaches loopback only",
    "providers": "reaches provider hosts only",
    "local": "reaches the model server that it started",
}


class Guard:
    """The rule of one lane, applied to this process.

    Shape: `item` is the test that runs now, `module` the file being loaded while no test runs.
    """

    __slots__ = (
        "_canary_thread",
        "_checks",
        "_unseen",
        "hosts",
        "item",
        "lane",
        "module",
        "modules",
        "network",
        "package",
        "spool",
        "start",
    )

    def __init__(
        self,
        lane: str,
        network: str,
        *,
        modules: Sequence[str] = (),
        hosts: Sequence[str] = (),
        spool: str = "",
        package: str = LOOP_PACKAGE,
    ) -> None:
        self.lane = lane
        self.network = network
        self.modules = frozenset(modules)
        self.hosts = frozenset(host.lower() for host in hosts)
        self.spool = spool
        self.package = package
        self.item: str | None = None
        self.module: str | None = None
        self.start = NOT_SHOWN
        self._canary_thread = 0
        self._unseen: set[tuple[str | None, str]] = set()
        self._checks: dict[str, Callable[[tuple[object, ...]], None]] = {
            "socket.connect": self._check_connect,
            "socket.sendto": self._check_connect,
            "socket.sendmsg": self._check_connect,
            "socket.getaddrinfo": self._check_look_up,
            "socket.gethostbyname": self._check_look_up,
            "socket.gethostbyaddr": self._check_look_up,
            "socket.getnameinfo": self._check_reverse,
            "import": self._check_import,
            "ctypes.dlopen": self._note_library,
            "ctypes.dlsym": self._check_native_call,
            "subprocess.Popen": self._note_child,
            "os.exec": self._note_child,
            "os.posix_spawn": self._note_child,
            "os.system": self._note_child,
        }

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        """Judge one audit event of the interpreter.

        Raises: GuardRefused; the try has left a line in the spool by then.
        Source: CPython, "Audit events table".
        """
        check = self._checks.get(event)
        if check is not None:
            check(arguments)

    def probe(self) -> str:
        """Try the two canaries now: `refused` when this guard itself refused both.

        Shape: a time-out, a dead network or a name that does not resolve is `not shown`, because it proves no guard.
        """
        previous, self._canary_thread = self._canary_thread, _thread_id()
        try:
            shown = all((_is_refused(_connect_to_canary), _is_refused(_look_up_canary)))
        finally:
            self._canary_thread = previous
        return REFUSED if shown else NOT_SHOWN

    def note_canary(self, when: str) -> str:
        """Try the canaries and leave a line about the outcome in the spool."""
        outcome = self.probe()
        loop = getattr(sys.modules.get(self.package), "__file__", None)
        self._append(CANARIES_FILE, pid=os.getpid(), when=when, outcome=outcome, item=self._current_item(), loop=loop)
        return outcome

    def _check_connect(self, arguments: tuple[object, ...]) -> None:
        family = getattr(arguments[0], "family", None)
        address = arguments[1]
        if address is None or family == getattr(_socket, "AF_UNIX", -1):
            return  # sendmsg on a connected socket names no address; the connect was judged
        if isinstance(address, tuple) and len(address) >= 2 and family in (_socket.AF_INET, _socket.AF_INET6):
            place = f"{_text(address[0])}:{address[1]}"
            if not self._is_allowed(_text(address[0])) and place not in self.hosts:  # one port, named with its host
                self._refuse(f"connect to {place}")
            return
        self._refuse(f"connect by address family {family}")

    def _check_look_up(self, arguments: tuple[object, ...]) -> None:
        host = arguments[0]
        if host is None:
            return  # a passive look-up for a listening socket: the machine's own addresses
        if not self._is_allowed(_text(host)):
            self._refuse(f"look-up of {_text(host)}")

    def _check_reverse(self, arguments: tuple[object, ...]) -> None:
        address = arguments[0]
        host = _text(address[0]) if isinstance(address, tuple) and address else ""
        if not self._is_allowed(host):
            self._refuse(f"look-up of {host}")

    def _check_import(self, arguments: tuple[object, ...]) -> None:
        name = arguments[0]
        if isinstance(name, str) and name.partition(".")[0] in self.modules:
            module = name.partition(".")[0]
            reason = (
                "it can answer in the provider's place"
                if self.network == "providers"
                else "it opens sockets of its own, where the guard cannot see them"
            )
            self._refuse(
                f"import of {module}",
                code="GUARD_IMPORT",
                rule=f"refuses module {module!r}: {reason}",
                fix=f"do without {module} here, or move the test to another lane",
            )

    def _check_native_call(self, arguments: tuple[object, ...]) -> None:
        name = _text(arguments[1])
        if name in _NATIVE_CALLS:
            self._refuse(f"native call of {name}")

    def _note_library(self, arguments: tuple[object, ...]) -> None:
        if arguments[0]:  # without a name it is this process itself, which ctypes opens when it is loaded
            self._note_unseen("a native library")

    def _note_child(self, arguments: tuple[object, ...]) -> None:
        try:
            from lanes.guard_children import why_unseen
        except ImportError:  # the interpreter ends and loads nothing any more
            return
        reason = why_unseen(arguments)
        if reason:
            self._note_unseen(reason)

    def _note_unseen(self, what: str) -> None:
        """Leave a line about something that this guard lets go and cannot look into; only the host's wall holds it."""
        item = self._current_item()
        if (item, what) not in self._unseen:
            self._unseen.add((item, what))
            self._append(UNSEEN_FILE, item=item, what=what)

    def _is_allowed(self, host: str) -> bool:
        if self.network == "loopback":
            return host == "localhost" or _is_loopback(host)
        if self.network == "providers":
            return host.lower() in self.hosts or _is_global(host)
        return False

    def _refuse(self, what: str, *, code: str = "GUARD_NETWORK", rule: str = "", fix: str = "") -> None:
        text = f"lane {self.lane!r} {rule}" if rule else f"lane {self.lane!r} {_RULES[self.network]}, {what} refused"
        item = self._current_item()
        if self._canary_thread != _thread_id():
            module = self.module if item is not None else self.module or _calling_file()
            self._append(REFUSALS_FILE, item=item, module=module, pid=os.getpid(), what=what, code=code)
        raise GuardRefused(text, code=code, where=item or self.module or "", fix=fix or _FIXES[self.network])

    def _current_item(self) -> str | None:
        return self.item or os.environ.get(ITEM_VARIABLE) or None

    def _append(self, name: str, **fields: str | int | None) -> None:
        if not self.spool:
            return
        line = "{" + ", ".join(f"{_quote(key)}: {_literal(value)}" for key, value in fields.items()) + "}\n"
        descriptor = os.open(self.spool + "/" + name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line.encode("ascii"))  # one write, so that lines of many processes never mix
        finally:
            os.close(descriptor)


_installed: list[Guard] = []


def installed() -> Guard | None:
    """Return the guard of this process, None outside a lane."""
    return _installed[0] if _installed else None


def install(guard: Guard) -> None:
    """Put the guard in front of this process for good, and try its canary.

    Limits: once per process; a second call changes nothing.
    """
    if _installed:
        return
    _installed.append(guard)
    sys.addaudithook(guard.hook)
    guard.start = guard.note_canary("start")
    import atexit

    atexit.register(guard.note_canary, "end")


def encode_rule(lane: str, network: str, modules: Sequence[str], hosts: Sequence[str]) -> str:
    """Write a rule as the value of LANES_GUARD; the spool travels in a variable of its own."""
    return ";".join((lane, network, ",".join(modules), ",".join(hosts)))


def install_from_environment() -> bool:
    """Install the guard that the environment asks for; whether it asked for one."""
    value = os.environ.get(GUARD_VARIABLE)
    if not value:
        return False
    lane, network, modules, hosts = value.split(";")
    spool = os.environ.get(SPOOL_VARIABLE, "")
    package = os.environ.get(PACKAGE_VARIABLE, LOOP_PACKAGE)
    install(Guard(lane, network, modules=modules.split(","), hosts=hosts.split(","), spool=spool, package=package))
    return True


def _connect_to_canary() -> None:
    with_descriptor = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        with_descriptor.setblocking(False)  # without a guard this returns at once instead of waiting for nobody
        with_descriptor.connect(CANARY_ADDRESS)
    finally:
        with_descriptor.close()


def _look_up_canary() -> None:
    _socket.getaddrinfo(CANARY_NAME, CANARY_ADDRESS[1])


def _is_refused(probe: Callable[[], None]) -> bool:
    try:
        probe()
    except GuardRefused:
        return True
    except OSError:
        return False
    return False


def _is_loopback(host: str) -> bool:
    try:
        return _socket.inet_pton(_socket.AF_INET, host)[0] == 127
    except OSError:
        pass  # not an IPv4 address; it may be an IPv6 one
    try:
        return _socket.inet_pton(_socket.AF_INET6, host) == bytes(15) + b"\x01"
    except OSError:
        return False  # a name: only "localhost" itself is known to stay on this machine


def _is_global(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def _calling_file() -> str | None:
    """Name the file that tried, for a try that no test made: the innermost one that is not a library's."""
    libraries = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib is not loaded at interpreter start
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to look at a stack without loading inspect
    while frame is not None:
        name = frame.f_code.co_filename
        own = name != __file__ and not name.startswith((libraries, "<")) and "site-packages" not in name
        if own:
            return name.removeprefix(os.getcwd() + os.sep) + f":{frame.f_lineno}"  # noqa: PTH109 - as above
        frame = frame.f_back
    return None


def _thread_id() -> int:
    import _thread

    return _thread.get_ident()


def _text(host: object) -> str:
    if isinstance(host, (bytes, bytearray)):
        return bytes(host).decode("ascii", "backslashreplace")
    return str(host)


def _literal(value: str | int | None) -> str:
    if value is None:
        return "null"
    return str(value) if isinstance(value, int) else _quote(value)


def _quote(text: str) -> str:
    """Spell a JSON string in ASCII without loading the json package."""
    pieces = []
    for unit in memoryview(text.encode("utf-16-be", "surrogatepass")).cast("B").tobytes().hex(" ", 2).split():
        code = int(unit, 16)
        plain = 0x20 <= code < 0x7F and code not in {0x22, 0x5C}
        pieces.append(chr(code) if plain else f"\\u{unit}")
    return '"' + "".join(pieces) + '"'
