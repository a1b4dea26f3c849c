"""The wall around a lane's processes: a network namespace of its own, and the depth that was really reached.

Room: Linux only where it says so; the runner enters before it has threads or children, the plugin measures.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lanes.guard import CANARY_ADDRESS, installed

Depth = Literal["D1", "D2", "D3"]

OUTER_VARIABLE = "LANES_NETNS_OUTSIDE"  # the namespace the lane was started from, as its inode number

_CLONE_NEWNET = 0x40000000
_CLONE_NEWUSER = 0x10000000
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_IFREQ = "16sh22x"  # struct ifreq: name, flags, padding to 40 bytes

_PR_CAPBSET_DROP = 24
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES = "IIIIII"  # struct __user_cap_data_struct twice: effective, permitted, inheritable, low words first
# What would lead the user root out of the namespace: entering another one, acting inside a process that stands
# outside, loading code into the kernel. The rest of root's powers stays: tests write files and end processes with it.
_WAYS_OUT = {
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_SYS_MODULE": 16,
    "CAP_SYS_RAWIO": 17,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_MKNOD": 27,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
    "CAP_CHECKPOINT_RESTORE": 40,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What came of the try to enter a namespace.

    Shape: `outside` is the inode number of the namespace that was left, empty where the machine has none;
    `problem` says why the wall could not be built.
    """

    outside: str
    problem: str | None = None


def enter_namespace(*, loopback: bool) -> Entry:
    """Move this process into a network namespace of its own, with loopback up when asked.

    Shape: a refusal by the machine is an answer, not an error; the caller goes on at D2 and records it. Inside, nobody
    has the powers any more that lead out again, root included.
    Limits: only before threads and children exist: they stay where they were born.
    Source: unshare(2), user_namespaces(7), netdevice(7), capabilities(7).
    """
    outside = namespace_id()
    if not outside or not sys.platform.startswith("linux"):
        return Entry(outside, "this machine has no network namespaces")
    problem = _unshare(_CLONE_NEWNET)
    if problem is not None:  # an ordinary user needs a user namespace around it, with the same ids inside
        user, group = os.getuid(), os.getgid()
        problem = _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
        if problem is None:
            problem = _map_ids(user, group)
    if problem is None and loopback:
        problem = _raise_loopback()
    if problem is None:
        problem = _give_up_ways_out()
    if problem is None:
        problem = _check_dead()
    return Entry(outside, problem)


def namespace_id() -> str:
    """Return the inode number of this process's network namespace, empty where there is none."""
    try:
        return str(os.stat("/proc/self/ns/net").st_ino)  # noqa: PTH116 - Path.stat would say the same, later
    except OSError:
        return ""


def interfaces() -> tuple[str, ...]:
    """Return the names of the network interfaces of this process's namespace."""
    try:
        lines = Path("/proc/net/dev").read_text("ascii").splitlines()
    except OSError:
        return ()
    return tuple(line.partition(":")[0].strip() for line in lines[2:])


def measure_depth(outside: str, *, guarded: bool) -> Depth:
    """Measure how deep this process is guarded.

    Shape: D3 when its namespace is not the one outside and holds loopback alone; else D2 with the process guard.
    """
    inside = namespace_id()
    if outside and inside and inside != outside and interfaces() == ("lo",):
        return "D3"
    return "D2" if guarded else "D1"


def _unshare(flags: int) -> str | None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) == 0:
        return None
    return f"the machine refused a network namespace: {os.strerror(ctypes.get_errno())}"


def _map_ids(user: int, group: int) -> str | None:
    try:
        Path("/proc/self/setgroups").write_text("deny", "ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", "ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", "ascii")
    except OSError as error:
        return f"the machine refused the ids of a user namespace: {error.strerror}"
    return None


def _raise_loopback() -> str | None:
    import fcntl

    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            answer = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack(_IFREQ, b"lo", 0))
            flags = struct.unpack(_IFREQ, answer)[1]
            fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack(_IFREQ, b"lo", flags | _IFF_UP))
    except OSError as error:
        return f"loopback did not come up: {error.strerror}"
    return None


def _give_up_ways_out() -> str | None:
    """Give up the powers that lead out, for this process and for whatever it starts, setuid programs among it."""
    libc = ctypes.CDLL(None, use_errno=True)
    for number in _WAYS_OUT.values():
        if libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) and ctypes.get_errno() == errno.EPERM:
            break  # who may not give up powers for good has none: an ordinary user in the namespace of another
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0))
    data = ctypes.create_string_buffer(struct.calcsize(_CAPABILITIES))
    if libc.capget(header, data):
        return f"the powers of this process cannot be read: {os.strerror(ctypes.get_errno())}"
    lost = sum(1 << number for number in _WAYS_OUT.values())
    words = struct.unpack(_CAPABILITIES, data.raw[: struct.calcsize(_CAPABILITIES)])
    masks = (~lost & 0xFFFFFFFF,) * 3 + (~(lost >> 32) & 0xFFFFFFFF,) * 3
    kept = struct.pack(_CAPABILITIES, *(word & mask for word, mask in zip(words, masks, strict=True)))
    if libc.capset(header, ctypes.create_string_buffer(kept)):
        return f"the powers that lead out of the namespace stayed: {os.strerror(ctypes.get_errno())}"
    return None


def _check_dead() -> str | None:
    """Check that the outside is unreachable at once, unless a guard of this process would answer in its place."""
    if installed() is not None:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        code = probe.connect_ex(CANARY_ADDRESS)
    if code == errno.ENETUNREACH:
        return None
    return f"the outside is still reachable from the namespace (errno {code})"
