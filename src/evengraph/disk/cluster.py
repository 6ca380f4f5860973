"""`run` and `predict` on a Ray cluster: the same command, in a worker on each host.

Ray finds room for the workers, carries what the first one prints, and knows who is lost. The
workers join one another as processes of torchrun do (`training.ranks`), and share a folder.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Thread
from traceback import print_exc
from typing import Any, NamedTuple, NoReturn

import psutil
import typer
from rich.text import Text

from evengraph import __version__
from evengraph.cli.console import err, out, print_error, print_sentence, words_without
from evengraph.core.errors import first_line
from evengraph.core.lazy import import_optional, is_packed
from evengraph.core.machine import format_size, parse_size
from evengraph.training.ranks import LostRankError

RETRIES = 3  # after the loss of a worker
PATIENCE = 300.0  # seconds for hosts to come back, or for others to free what they use
POLL = 0.5  # seconds between looks at what the first worker prints
BESIDES = 2**29  # bytes of Python and torch, which --memory does not count
DONE = 76  # how a child process says that all went well
CHILD = (
    "from evengraph.core.machine import end_with_parent; end_with_parent(); "
    "from evengraph.cli import main; main()"
)


class Worker:
    """An actor: a process that runs the command, and what it has printed so far."""

    def __init__(self) -> None:
        self.lines: deque[tuple[bool, str]] = deque()
        self.process: Popen[str] | None = None

    def about(self, folder: str) -> dict[str, Any]:
        """Where it is, and what it needs to know of its host."""
        import ray

        context = ray.get_runtime_context()
        return {
            "host": ray.util.get_node_ip_address(),
            "port": self.free_port(),
            "version": __version__,
            "sees": Path(folder).is_dir(),
            "gpus": context.get_accelerator_ids().get("GPU", []),
        }

    def free_port(self) -> int:
        with socket.socket() as free:
            free.bind(("", 0))
            port: int = free.getsockname()[1]
        return port

    def run(self, words: Sequence[str], folder: str, environment: Mapping[str, str]) -> int:
        """Run the command to its end; returns its status, negative after a signal."""
        own = {"PYTHONUNBUFFERED": "1", **_interface(environment["HOST"])}
        command, variables = (
            [sys.executable, "-c", CHILD, *words],
            {**own, **os.environ, **environment},
        )
        options: Any = {"stdout": PIPE, "stderr": PIPE, "text": True, "errors": "replace"}
        with Popen(command, cwd=folder, env=variables, **options) as process:
            self.process = process
            readers = [
                Thread(target=self._read, args=(pipe, is_error))
                for pipe, is_error in ((process.stdout, False), (process.stderr, True))
            ]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
        return process.returncode

    def _read(self, pipe: Any, is_error: bool) -> None:
        self.lines.extend((is_error, line.rstrip("\n")) for line in pipe)

    def printed(self) -> list[tuple[bool, str]]:
        """The lines since the last call: whether it is one of errors, and its text."""
        return [self.lines.popleft() for _ in range(len(self.lines))]


def _interface(host: str) -> dict[str, str]:
    """The network interface with an address, for gloo and NCCL, which take any otherwise."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(address.address == host for address in addresses):
            return {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": name}
    return {}


class Need(NamedTuple):
    """The CPUs, GPUs and memory of a worker."""

    cpus: int
    gpus: int
    memory: int  # bytes; 0 if no limit was given

    @property
    def bundle(self) -> dict[str, float]:
        found = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory}
        return {name: float(amount) for name, amount in found.items() if amount}

    def __str__(self) -> str:
        parts = [f"{self.cpus} CPU{'s' * (self.cpus > 1)}", "a GPU" * bool(self.gpus)]
        parts.append(f"{format_size(self.memory)} of memory" * bool(self.memory))
        return ", ".join(filter(None, parts))

    def fit_into(self, nodes: Sequence[Mapping[str, float]]) -> int:
        """How many workers there is room for."""
        return sum(
            min(int(node.get(name, 0) // amount) for name, amount in self.bundle.items())
            for node in nodes
        )


def run_on_cluster(
    address: str | None,
    workers: int | None,
    data: str | Path,
    memory: str | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> NoReturn:
    """Run the command that was typed in workers on a Ray cluster; ends as the first of them ends.

    After the loss of a worker all begin again and continue what is stored, three times at most.

    Args:
        workers: How many; by default one per host.
        memory: The limit of each, which is asked for beside that of Python and torch.
        threads: CPUs of each; by default as many as all can have.
    """
    if address is None:
        raise ValueError("--workers goes with --ray, which names the cluster.")
    if not is_packed(data):
        raise ValueError(
            f"--ray is for packed graphs: evengraph pack {data} --out graph makes one."
        )
    where = workers, memory, device, threads
    raise typer.Exit(_apart(lambda: _drive(address, words_without("--ray", "--workers"), *where)))


@contextmanager
def connected_ray(address: str) -> Iterator[Any]:
    """The module `ray`, connected to a cluster."""
    ray = import_optional("ray", "'.[ray]'")
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # a slow start raises a plain Exception
        raise OSError(f"Ray did not start: {first_line(error)}.") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _apart(work: Callable[[], int]) -> int:
    """Call a function in a child process: where the cluster is gone, Ray ends it with status 0."""
    child = os.fork()
    if not child:
        status = 1
        try:
            status = work() or DONE
        except (ValueError, OSError) as error:
            print_error(error)
            status = 2
        except KeyboardInterrupt:
            status = 130
        except Exception:
            print_exc()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal interrupts both processes
            sys.stdout.flush()
            os._exit(status)
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except KeyboardInterrupt:
        os.kill(child, signal.SIGINT)
        os.waitpid(child, 0)
        raise
    if status <= 0:
        raise OSError("The Ray cluster is gone. Start it again; the same command resumes.")
    return 0 if status == DONE else status


def _drive(
    address: str,
    words: Sequence[str],
    workers: int | None,
    memory: str | None,
    device: str,
    threads: int | None,
) -> int:
    """Start workers, and again after a loss; returns the status of the command."""
    with connected_ray(address) as ray:
        nodes = _nodes(ray)
        count = workers or len(nodes)
        need = _need(nodes, count, memory=memory, device=device, threads=threads)
        hosts = f"{len(nodes)} host{'s' * (len(nodes) > 1)}"
        print_sentence(f"{_workers(count)} on {hosts}, each with {need}", err)
        for attempt in range(RETRIES + 1):
            group = _room(ray, need, count, patient=attempt > 0)
            try:
                status, lost = _attempt(ray, group, need, count, words)
            finally:
                ray.util.remove_placement_group(group)
            if not lost:
                return status
            if attempt < RETRIES:
                again = f"starting again from what is stored ({attempt + 1} of {RETRIES})"
                print_sentence(f"Lost {lost}: {again}", err)
    raise OSError(f"Lost {lost}, after {RETRIES} new starts. The same command resumes.")


def _workers(count: int) -> str:
    return f"{count} worker{'s' * (count > 1)}"


def _nodes(ray: Any) -> list[Mapping[str, float]]:
    """The resources of each host of the cluster, used or not."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _need(
    nodes: Sequence[Mapping[str, float]],
    count: int,
    *,
    memory: str | None,
    device: str,
    threads: int | None,
) -> Need:
    """The needs of each worker; raises ValueError if the hosts lack room for all of them."""
    room = parse_size(memory) + BESIDES if memory else 0
    gpus = int(device.startswith("cuda"))
    if device == "auto":  # one for each, or none
        gpus = int(Need(0, 1, 0).fit_into(nodes) >= count)
    largest = int(max((node.get("CPU", 0) for node in nodes), default=0))
    for cpus in [threads] if threads else range(max(largest, 1), 0, -1):
        need = Need(cpus, gpus, room)
        if need.fit_into(nodes) >= count:
            return need
    has = Counter(
        str(Need(int(n.get("CPU", 0)), int(n.get("GPU", 0)), int(n["memory"]))) for n in nodes
    )
    hosts = "; ".join(f"{number} with {what}" for what, number in has.items())
    needs = f"{_workers(count)} need{'s' * (count == 1)} {need} each"
    raise ValueError(f"{needs}. The cluster has hosts: {hosts}.")


def _room(ray: Any, need: Need, count: int, *, patient: bool) -> Any:
    """A placement group of so many workers; waits for what others use, or for lost hosts."""
    group = ray.util.placement_group([need.bundle] * count, strategy="SPREAD")
    if not group.wait(10):
        print_sentence(f"Waiting for room for {_workers(count)}, each with {need}", err)
        if not group.wait(PATIENCE):
            ray.util.remove_placement_group(group)
            what = "Hosts did not come back" if patient else "Others use the cluster"
            resumes = " The same command resumes." if patient else ""
            raise OSError(f"{what}: no room for {_workers(count)}, each with {need}.{resumes}")
    return group


def _attempt(ray: Any, group: Any, need: Need, count: int, words: Sequence[str]) -> tuple[int, str]:
    """Start all workers, print what the first prints; returns the status, or who was lost."""
    folder, options = str(Path.cwd()), need.bundle
    actor = ray.remote(Worker).options(
        num_cpus=need.cpus,
        num_gpus=need.gpus,
        memory=options.get("memory"),
        max_concurrency=2,
        scheduling_strategy=ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(group),
    )
    actors = [actor.remote() for _ in range(count)]
    try:
        abouts = ray.get([one.about.remote(folder) for one in actors])
        _check(abouts, folder)
        runs = {
            one.run.remote(words, folder, environment): (one, about["host"])
            for one, about, environment in zip(
                actors, abouts, _environments(abouts, need), strict=True
            )
        }
        return _follow(ray, runs, actors[0])
    except ray.exceptions.RayError as error:
        return 1, f"a worker ({first_line(error)})"
    finally:
        for one in actors:
            ray.kill(one)


def _check(abouts: Sequence[Mapping[str, Any]], folder: str) -> None:
    """Raise ValueError unless all hosts have this version and see the folder."""
    for about in abouts:
        if about["version"] != __version__:
            raise ValueError(
                f"{about['host']} has evengraph {about['version']}, this host {__version__}."
            )
        if not about["sees"]:
            raise ValueError(
                f"{about['host']} has no folder {folder}: run the command in one that all share."
            )


def _environments(abouts: Sequence[Mapping[str, Any]], need: Need) -> list[dict[str, str]]:
    """The variables that torchrun sets for each process; all meet at the first worker's host."""
    here: dict[str, list[Mapping[str, Any]]] = {}
    found = []
    for rank, about in enumerate(abouts):
        here.setdefault(about["host"], []).append(about)
        found.append(
            {
                "MASTER_ADDR": abouts[0]["host"],
                "MASTER_PORT": str(abouts[0]["port"]),
                "RANK": str(rank),
                "WORLD_SIZE": str(len(abouts)),
                "LOCAL_RANK": str(len(here[about["host"]]) - 1),
                "OMP_NUM_THREADS": str(need.cpus),
                "HOST": about["host"],
                "COLUMNS": str(out.width),
            }
        )
    for environment, about in zip(found, abouts, strict=True):
        together = here[about["host"]]
        environment["LOCAL_WORLD_SIZE"] = str(len(together))
        if need.gpus:  # each takes that of its local rank
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(
                g for one in together for g in one["gpus"]
            )
    return found


def _follow(ray: Any, runs: dict[Any, tuple[Any, str]], first: Any) -> tuple[int, str]:
    """Print what the first worker prints to the end; returns the status, or who is lost."""
    waiting, failed = list(runs), 0
    while waiting:
        ready, waiting = ray.wait(waiting, timeout=POLL)
        _show(ray.get(first.printed.remote()))
        for run in ready:
            actor, host = runs[run]
            try:
                status = ray.get(run)
            except ray.exceptions.RayError:
                return 1, f"the worker on {host}"
            if status < 0:
                return 1, f"the worker on {host} (signal {-status})"
            if status and status != LostRankError.exit_status:
                if actor is not first:
                    _show(ray.get(actor.printed.remote()))
                return status, ""
            failed = failed or status
    return failed, "" if not failed else "a worker"


def _show(lines: Sequence[tuple[bool, str]]) -> None:
    for is_error, line in lines:
        (err if is_error else out).print(Text(line), soft_wrap=True)
