"""Three hosts of a Ray cluster on one machine, and what goes wrong with them in training.

Each host is a network namespace with an address, a host name and a Ray node. Workers of
`evengraph run --ray` are killed, a host is cut off and comes back, the head is restarted: the job
must end as one process does, or end with a line and go on with the same command.

It needs root, the commands `ip` and `unshare`, and `pip install ray`.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

import numpy as np
import pandas as pd
import psutil

import evengraph as eg
from evengraph.disk import pack_graph

NET, BRIDGE, HEAD = "10.77.0", "egbridge", "10.77.0.1:6379"
PORTS = {  # fixed, because Ray ends a node whose agents do not write theirs in 15 seconds
    "dashboard_agent_listen_port": 20004,
    "metrics_agent_port": 20001,
    "metrics_export_port": 20003,
    "runtime_env_agent_port": 20002,
}
QUIET = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_agent_register_timeout_ms": "300000",
    "OMP_NUM_THREADS": "1",
}
START = 180  # seconds until a host has to be there
END = 1200  # seconds until a job has to end


class Hosts:
    """The namespaces, and the Ray node of each."""

    def __init__(self, folder: Path, count: int = 3) -> None:
        self.folder, self.numbers = folder, range(1, count + 1)
        self.nodes: dict[int, subprocess.Popen] = {}
        names = [f"{NET}.{number} host{number}\n" for number in self.numbers]
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(names))
        (folder / "resolv").write_text("")  # a name server would be asked in vain

    def __enter__(self):
        ip(f"link add {BRIDGE} type bridge")
        ip(f"addr add {NET}.254/24 dev {BRIDGE}")
        ip(f"link set {BRIDGE} up")
        for number in self.numbers:
            name = f"egh{number}"
            ip(f"netns add {name}")
            ip(f"link add {name} type veth peer name eth0 netns {name}")
            ip(f"link set {name} master {BRIDGE} up")
            ip(f"-n {name} addr add {NET}.{number}/24 dev eth0")
            ip(f"-n {name} link set eth0 up")
            ip(f"-n {name} link set lo up")
            ip(f"-n {name} route add default via {NET}.254")
        for number in self.numbers:
            self.start(number)
        return self

    def __exit__(self, *_):
        for number in list(self.nodes):
            self.stop(number)
        for number in self.numbers:
            ip(f"netns del egh{number}")
        ip(f"link del {BRIDGE}")

    def command(self, number, *words):
        """The words as they run on a host."""
        mounts = "; ".join(
            f"mount --bind {self.folder}/{name} /etc/{file}"
            for name, file in (("hosts", "hosts"), ("resolv", "resolv.conf"))
        )
        script = f'{mounts}; hostname host{number}; exec "$@"'
        inside = ["unshare", "--uts", "--mount", "sh", "-c", script, "sh", *map(str, words)]
        return ["ip", "netns", "exec", f"egh{number}", *inside]

    def start(self, number):
        """Start the Ray node of a host; the first is the head."""
        head = ["--head", "--port=6379", "--include-dashboard=false"]
        place = head if number == 1 else [f"--address={HEAD}"]
        agents = {
            "dashboard-agent-grpc-port": PORTS["metrics_agent_port"],
            "dashboard-agent-listen-port": PORTS["dashboard_agent_listen_port"],
            "metrics-export-port": PORTS["metrics_export_port"],
            "runtime-env-agent-port": PORTS["runtime_env_agent_port"],
        }
        words = [*place, f"--node-ip-address={NET}.{number}", "--num-cpus=1", "--block"]
        words += [f"--{name}={port}" for name, port in agents.items()]
        words += ["--memory=4000000000", "--object-store-memory=100000000"]
        words += [f"--temp-dir={self.folder}/ray{number}", "--disable-usage-stats"]
        log = self.folder / f"node{number}.log"
        ray = Path(sys.executable).parent / "ray"
        with log.open("w") as file:
            self.nodes[number] = subprocess.Popen(
                self.command(number, ray, "start", *words),
                stdout=file,
                stderr=file,
                env=os.environ | QUIET,
                start_new_session=True,
            )
        wait(lambda: self._write_ports() or "runtime started" in log.read_text(), START)

    def _write_ports(self):
        for process in psutil.process_iter(["name", "cmdline"]):
            if process.info["name"] != "raylet":
                continue
            given = dict(word.partition("=")[::2] for word in process.info["cmdline"] or ())
            session = Path(given.get("--session_dir", "/nowhere"))
            if session.is_relative_to(self.folder):
                for name, port in PORTS.items():
                    path = session / f"{name}_{given['--node_id']}"
                    if session.is_dir() and not path.exists():
                        path.write_text(str(port))

    def stop(self, number):
        """Kill the Ray node of a host and all that runs there."""
        inside = subprocess.run(
            ["ip", "netns", "pids", f"egh{number}"], capture_output=True, text=True, check=True
        )
        for pid in map(int, inside.stdout.split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.nodes.pop(number).wait()
        shutil.rmtree(self.folder / f"ray{number}", ignore_errors=True)


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


def wait(done, seconds):
    """Wait until something holds; raises TimeoutError if it takes too long."""
    started = monotonic()
    while not done():
        if monotonic() - started > seconds:
            raise TimeoutError
        sleep(0.3)


@contextmanager
def job(hosts, *words, host=1):
    """A command that runs on a host, and where its lines go."""
    log = hosts.folder / "job.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            hosts.command(host, sys.executable, "-m", "evengraph", *words),
            stdout=file,
            stderr=file,
            cwd=hosts.folder,
            env=os.environ | QUIET,
        )
    try:
        yield process, log
    finally:
        process.kill()
        process.wait()


def ranks(number):
    """Processes that are a worker of a host."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        with suppress(psutil.Error):
            is_worker = any("end_with_parent" in word for word in process.info["cmdline"] or ())
            if is_worker and process.environ().get("HOST") == f"{NET}.{number}":
                found.append(process)
    return found


def attack(hosts, name, epochs):
    """Train with one kind of trouble; returns the lines of the job, and whether it ended well."""
    model = f"model-{name}"
    train = ["run", "graph", "--memory", "200MB", "--splits", "5-5", "--save", model]
    train += ["--out", f"run-{name}", "--ray", HEAD, "--workers", "3"]
    train += [word for key in ("max_epochs", "patience") for word in ("--set", f"{key}={epochs}")]
    shutil.rmtree(hosts.folder / "graph" / "propagated", ignore_errors=True)
    with job(hosts, *train) as (process, log):
        wait(lambda: "epoch" in log.read_text() or process.poll() is not None, END)
        if name == "worker":
            for one in ranks(3):
                one.kill()
        elif name == "host":
            ip("link set egh3 down")
            sleep(60)
            ip("link set egh3 up")
            hosts.stop(3)
            hosts.start(3)
        elif name == "head":
            hosts.nodes[1].send_signal(signal.SIGSTOP)  # the job runs on its host: only Ray ends
            for one in psutil.process_iter(["name"]):
                if one.info["name"] == "gcs_server":
                    one.kill()
        process.wait(END)
    lines, status = log.read_text().splitlines(), process.returncode
    if name == "head":
        for number in hosts.numbers:
            hosts.stop(number)
        for number in hosts.numbers:
            hosts.start(number)
        with job(hosts, *train) as (process, again):
            process.wait(END)
            return [*lines, *again.read_text().splitlines()], status != 0 == process.returncode
    return lines, status == 0


def main(arguments=None):
    """Run the attacks; returns 1 if a job ended badly or its model predicts something else."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=1_000)
    parser.add_argument("--attack", choices=["none", "worker", "host", "head"], action="append")
    chosen = parser.parse_args(arguments)
    failures = 0
    with TemporaryDirectory() as folder, Hosts(Path(folder)) as hosts:
        graph = eg.toy(chosen.nodes, 5 * chosen.nodes, 32, 3)
        pack_graph(graph, hosts.folder / "graph")
        expected = None
        for name in ["none", *(chosen.attack or ["worker", "host", "head"])]:
            started = monotonic()
            lines, good = attack(hosts, name, chosen.epochs)
            model, table = f"model-{name}", f"predictions-{name}"
            if good:
                words = ["predict", model, "graph", "--memory", "200MB", "--out", table]
                with job(hosts, *words, "--ray", HEAD, "--workers", "3") as (process, _):
                    good = process.wait(END) == 0
                found = pd.read_parquet(hosts.folder / table) if good else None
                if good and expected is None:
                    expected = found
                good = good and np.allclose(found.iloc[:, 2:], expected.iloc[:, 2:], atol=0.02)
            failures += not good
            seconds = monotonic() - started
            print(f"{name:8} {'ended right' if good else 'FAILED'} in {seconds:.0f} s", flush=True)
            for line in lines:
                if "Lost" in line or "Error" in line or "Waiting" in line:
                    print(f"    {line}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
