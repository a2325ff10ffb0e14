"""The environment of a measurement: the machine, the commit, the date, and the processor use of other programs.

The environment is read from the system once before and once after the measurement. Owns nothing.
"""

import os
import platform
import resource
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import attrs
import numpy as np


@attrs.frozen(kw_only=True)
class BenchEnvironment:
    """The environment as recorded in a result file."""

    machine: str = ""
    python: str = ""
    numpy: str = ""
    commit: str = ""  # commit id, with "-dirty" if there are uncommitted changes; "" outside a checkout
    date: str = ""
    load: str = ""  # load averages at the start of the measurement


def bench_environment() -> BenchEnvironment:
    size = f"{os.cpu_count()} cores, {_memory_gib():.0f} GiB"
    return BenchEnvironment(
        machine=f"{_processor()}, {size}, {platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        numpy=np.__version__,
        commit=_commit(),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        load=" ".join(f"{load:.1f}" for load in os.getloadavg()),
    )


def _processor() -> str:
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        ended = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return ended.stdout.strip() if not ended.returncode else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


@attrs.frozen
class CpuReading:
    """Processor seconds used so far: by all processes, and by this process's finished children."""

    at: float
    everybody: float
    children: float

    @classmethod
    def now(cls) -> "CpuReading":
        fields = _text(Path("/proc/stat")).partition("\n")[0].split()[1:]
        # user, nice, system, irq, softirq: all time except idle and waiting for a disk
        busy = sum(int(fields[place]) for place in (0, 1, 2, 5, 6)) / os.sysconf("SC_CLK_TCK") if fields else 0.0
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(time.monotonic(), busy, used.ru_utime + used.ru_stime)

    def others_since(self, before: "CpuReading") -> float:
        """Return the average number of cores that other programs have used since the earlier reading."""
        elapsed = self.at - before.at
        others = (self.everybody - before.everybody) - (self.children - before.children)
        return max(0.0, others / elapsed) if elapsed > 0 else 0.0
