"""CPU time of a process tree, to the nanosecond, while the tree is still running.

Worker processes are not reaped during an epoch, so `os.times()` does not see them; their CPU clocks can be read
directly, because the kernel encodes a process id in a clock id.
"""

import os
import resource
import time
from pathlib import Path

_CPUCLOCK_SCHED = 2


def tree_cpu_s() -> float:
    """User + system seconds of this process, its reaped children and its living descendants."""
    reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = sum(_process_cpu_s(pid) for pid in _descendants(os.getpid()))
    return time.process_time() + reaped.ru_utime + reaped.ru_stime + living


def machine_busy_s() -> float:
    """Seconds all cores together have spent busy since boot, time stolen by the hypervisor included."""
    fields = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle_and_iowait = fields[3] + fields[4]
    return (sum(fields) - idle_and_iowait) / os.sysconf("SC_CLK_TCK")


def _process_cpu_s(pid: int) -> float:
    try:
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return 0.0  # It ended between the listing and here; its time is then among the reaped.


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    pending = [pid]
    while pending:
        parent = pending.pop()
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                children = [int(c) for c in task.read_text().split()]
            except OSError:
                continue
            found += children
            pending += children
    return found
