"""A Slurm of four nodes on this machine: its own munged, slurmctld and four slurmd, as root, without systemd.

Everything lies in one folder and every daemon is a child of this process, so that nothing is left behind.
"""

import os
import re
import socket
import subprocess
import time
from pathlib import Path

N_NODES = 4
START_S = 120.0

CONFIGURATION = """\
ClusterName=forebay
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
CredType=cred/munge
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=2
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool.%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.%n.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.%n.log
SlurmdParameters=config_overrides
TmpFS={dir}/tmp.%n
{nodes}
PartitionName=main Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """The daemons, and how to run something on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: list[subprocess.Popen[bytes]] = []
        # Several nodes on one host have to speak TCP: they would take one another's shared memory for their own.
        self.environment = os.environ | {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "OMPI_MCA_btl": "self,tcp",
            "OMPI_MCA_btl_tcp_if_include": "lo",
        }

    def start(self) -> None:
        """Starts the daemons and waits until all nodes are idle."""
        (self.folder / "state").mkdir()
        for node in range(1, N_NODES + 1):
            (self.folder / f"spool.n{node}").mkdir()
            (self.folder / f"tmp.n{node}").mkdir()
        ports = free_ports(N_NODES + 1)
        host = socket.gethostname().split(".")[0]
        line = "NodeName=n{} NodeHostname={} NodeAddr=127.0.0.1 Port={} CPUs=4 RealMemory=1000 State=UNKNOWN"
        nodes = "\n".join(line.format(node, host, ports[node]) for node in range(1, N_NODES + 1))
        text = CONFIGURATION.format(host=host, dir=self.folder, ports=ports, nodes=nodes)
        (self.folder / "slurm.conf").write_text(text)
        self.start_munge()
        self.daemon("slurmctld", "-D", "-f", self.folder / "slurm.conf")
        for node in range(1, N_NODES + 1):
            self.daemon("slurmd", "-D", "-f", self.folder / "slurm.conf", "-N", f"n{node}")
        self.wait_for("all nodes are idle", self.are_idle)

    def start_munge(self) -> None:
        """What the daemons know one another by."""
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        files = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        places = [f"--{option}={self.folder / 'munge'}.{ending}" for option, ending in files.items()]
        self.daemon("munged", "--foreground", "--force", f"--key-file={key}", *places)
        self.wait_for("munged has its socket", (self.folder / "munge.socket").exists)

    def daemon(self, name: str, *arguments: object) -> None:
        log = (self.folder / f"{name}.{len(self.daemons)}.out").open("wb")
        program = [f"/usr/sbin/{name}", *(str(argument) for argument in arguments)]
        self.daemons.append(subprocess.Popen(program, stdout=log, stderr=log, env=self.environment))

    def are_idle(self) -> bool:
        said = subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], env=self.environment, capture_output=True, text=True)
        return said.stdout.split() == ["idle"] * N_NODES

    def wait_for(self, what: str, is_so) -> None:
        end = time.monotonic() + START_S
        while not is_so():
            gone = [daemon.args for daemon in self.daemons if daemon.poll() is not None]
            if gone or time.monotonic() > end:
                raise RuntimeError(f"Slurm does not start: waited until {what}; ended: {gone}\n{self.logs()}")
            time.sleep(0.1)

    def logs(self) -> str:
        files = sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out"))
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-1500:]}" for file in files)

    def run(self, *arguments: object, timeout: float = 150, **options) -> subprocess.CompletedProcess[str]:
        """Runs a command of Slurm's."""
        command = [str(argument) for argument in arguments]
        environment = self.environment | options.pop("env", {})
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, **options)

    def batch(self, script: Path, timeout: float = 150, **options) -> tuple[str, str]:
        """Submits a script and waits for its end; returns its state and its exit status."""
        submitted = self.run("sbatch", "--parsable", script, **options)
        assert submitted.returncode == 0, submitted.stderr
        job = submitted.stdout.strip()
        end = time.monotonic() + timeout
        while True:
            said = self.run("scontrol", "show", "job", job).stdout
            state = re.search(r"JobState=(\w+)", said)
            if state and state[1] not in {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"}:
                return state[1], re.search(r"ExitCode=(\S+)", said)[1]
            assert time.monotonic() < end, f"the job does not end: {said}\n{self.logs()}"
            time.sleep(0.2)

    def stop(self) -> None:
        """Ends all jobs, then the daemons, the last started first."""
        if len(self.daemons) > 1:
            subprocess.run(["scancel", "--user=root"], env=self.environment, capture_output=True, timeout=60)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on."""
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in listening]
    for server in listening:
        server.close()
    return ports
