"""run and predict on Ray: real processes under a Ray that is a thread pool, lost ones, errors."""

import os
import sys
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import evengraph as eg
from command_line import call
from evengraph.disk import cluster, pack_graph

HOST = {"CPU": 2.0, "memory": 4e9}
LOST = type("RayError", (Exception,), {})


class Actor:
    """Calls the methods of a worker in threads, on the address of this machine."""

    def __init__(self, pool):
        self.worker, self.pool = cluster.Worker(), pool

    def __getattr__(self, name):
        def call(*arguments):
            if name == "about":  # asks Ray
                about = {"host": "127.0.0.1", "port": self.worker.free_port(), "gpus": []}
                return about | {"version": eg.__version__, "sees": True}
            return getattr(self.worker, name)(*arguments)

        return SimpleNamespace(remote=lambda *arguments: self.pool.submit(call, *arguments))


def fake_ray(pool, nodes):
    def wait(futures, timeout):
        done, left = wait_for(futures, timeout, FIRST_COMPLETED)
        return list(done), list(left)

    def get(futures):
        return [f.result() for f in futures] if isinstance(futures, list) else futures.result()

    options = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda: Actor(pool)))
    group = SimpleNamespace(wait=lambda seconds: True)
    util = SimpleNamespace(
        placement_group=lambda bundles, strategy: group,
        remove_placement_group=lambda group: None,
        scheduling_strategies=SimpleNamespace(PlacementGroupSchedulingStrategy=lambda group: group),
    )
    return SimpleNamespace(
        init=lambda **options: None,
        shutdown=lambda: None,
        nodes=lambda: [{"Alive": True, "Resources": node} for node in nodes],
        remote=lambda kind: options,
        wait=wait,
        get=get,
        kill=lambda actor: actor.worker.process and actor.worker.process.kill(),
        util=util,
        exceptions=SimpleNamespace(RayError=LOST),
    )


@pytest.fixture
def ray(monkeypatch):
    """A cluster of one host; a test may add hosts to the list."""
    nodes = [dict(HOST)]
    with ThreadPoolExecutor(8) as pool:
        found = fake_ray(pool, nodes)

        monkeypatch.setitem(sys.modules, "ray", found)
        monkeypatch.setattr(cluster, "_apart", lambda work: work())
        yield nodes


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return pack_graph(eg.toy(200, 600, 10, 3), tmp_path_factory.mktemp("graph") / "graph").path


OPTIONS = ("--memory", "300MB", "--splits", "5-5", "--set", "max_epochs=5")


def test_workers_train_and_predict_as_one_process(ray, graph, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    killed, start = [], cluster.Popen

    def dying(command, **options):
        process = start(command, **options)
        if options["env"]["RANK"] == "1" and not killed:
            killed.append(process.pid)
            process.kill()
        return process

    monkeypatch.setattr(cluster, "Popen", dying)
    alone, many = (["--save", f"{name}", "--out", f"r-{name}"] for name in ("alone", "many"))
    assert call("run", graph, *OPTIONS, *alone) == 0
    assert call("run", graph, *OPTIONS, *many, "--ray", "auto", "--workers", "2") == 0
    assert killed
    shown = capsys.readouterr()
    assert "(signal 9): starting again from what is stored (1 of 3)" in shown.err
    assert "wrote many" in shown.out
    models = [eg.load_model(tmp_path / name) for name in ("alone", "many")]
    losses = [torch.tensor(model.history_[0].loss) for model in models]
    torch.testing.assert_close(*losses, atol=1e-4, rtol=1e-3)
    predict = ("predict", "many", graph, "--memory", "300MB", "--out")
    assert call(*predict, "one.parquet") == 0
    alone = capsys.readouterr().out
    assert call(*predict, "folder", "--ray", "auto", "--workers", "2") == 0
    assert capsys.readouterr().out == alone.replace("one.parquet", "folder")
    tables = pd.read_parquet("one.parquet"), pd.read_parquet("folder")
    pd.testing.assert_frame_equal(*tables, rtol=1e-4, atol=1e-5)
    assert len(tables[0]) == 200


def test_it_ends_with_a_line_if_workers_are_lost_again_and_again(ray, graph, monkeypatch, capsys):
    monkeypatch.setattr(cluster, "_attempt", lambda *_: (1, "the worker on h2"))
    assert call("run", graph, "--ray", "auto") == 2
    shown = capsys.readouterr().err
    assert "Lost the worker on h2, after 3 new starts. The same command resumes." in shown


def test_an_error_of_the_workers_is_that_of_the_command(ray, graph, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call("run", graph, *OPTIONS[:2], "--method", "gcn", "--ray", "auto") == 2
    shown = capsys.readouterr().err
    assert "GCN needs the whole graph in memory" in shown
    assert "starting again" not in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", "3"), "3 workers need 1 CPU each. The cluster has hosts: 1 with 2 CPUs,"),
        (("--memory", "9GB"), "1 worker needs 1 CPU, 8.9 GiB of memory each. The cluster has"),
        (
            ("--device", "cuda"),
            "needs 1 CPU, a GPU each. The cluster has hosts: 1 with 2 CPUs, 3.7",
        ),
    ],
)
def test_what_the_cluster_lacks_is_said_before_anything_starts(
    ray, graph, options, message, capsys
):
    assert call("run", graph, "--ray", "auto", *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # a fork beside threads
@pytest.mark.parametrize(
    ("work", "status"),
    [
        (lambda: 0, 0),
        (lambda: 2, 2),
        (lambda: os._exit(0), None),
        (lambda: os.kill(os.getpid(), 9), None),
    ],
)
def test_a_driver_that_ray_ends_is_not_a_success(work, status):
    if status is not None:
        assert cluster._apart(work) == status
        return
    with pytest.raises(OSError, match=r"cluster is gone. Start it again; the same command resumes"):
        cluster._apart(work)


def test_a_cluster_that_does_not_start_is_one_line(ray, monkeypatch):
    def init(**options):
        raise Exception("The node timed out.\nMore.")

    monkeypatch.setattr(sys.modules["ray"], "init", init)
    with pytest.raises(OSError, match=r"^Ray did not start: The node timed out\.$"):
        cluster.connected_ray("there:1").__enter__()


def test_workers_need_a_cluster_and_a_packed_graph(graph, capsys):
    assert call("predict", graph, graph, "--workers", "2") == 2
    assert "--workers goes with --ray" in capsys.readouterr().err
    assert call("run", "toy", "--ray", "auto") == 2
    assert "evengraph pack toy --out graph" in capsys.readouterr().err


def test_workers_get_as_many_cpus_as_all_can_have():
    hosts = [{"CPU": 8.0, "memory": 9e9}, {"CPU": 4.0, "memory": 9e9}]
    options = {"memory": None, "device": "auto", "threads": None}
    assert [cluster._need(hosts, count, **options).cpus for count in (1, 2, 3, 12)] == [8, 4, 4, 1]
    gpus = [host | {"GPU": 1.0} for host in hosts]
    assert [cluster._need(gpus, count, **options).gpus for count in (2, 3)] == [1, 0]


def test_gpus_of_a_host_are_seen_by_all_its_workers():
    abouts = [{"host": h, "port": 1, "gpus": [g]} for h, g in (("a", "0"), ("b", "0"), ("a", "3"))]
    found = cluster._environments(abouts, cluster.Need(1, 1, 0))
    assert [one["CUDA_VISIBLE_DEVICES"] for one in found] == ["0,3", "0", "0,3"]
    assert [one["LOCAL_RANK"] for one in found] == ["0", "0", "1"]
    assert [one["LOCAL_WORLD_SIZE"] for one in found] == ["2", "1", "2"]
    assert {one["MASTER_ADDR"] for one in found} == {"a"}
    assert np.unique([one["OMP_NUM_THREADS"] for one in found]) == ["1"]
