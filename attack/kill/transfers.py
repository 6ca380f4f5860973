"""Kills of downloads, from a server of our own, and of packing."""

import hashlib
import os
import random
import shutil
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import sleep

from attack.kill.running import flagged, kill_during, run_alone
from evengraph.datasets import loading as fetching
from evengraph.datasets.loading import FileSet
from evengraph.disk import PackedGraph
from evengraph.disk.graphs import PackWriter
from evengraph.disk.packed_graph import ArrayFile

FILES = {f"part{n}": random.Random(n).randbytes(200_000) for n in range(3)}


class _Server(BaseHTTPRequestHandler):
    """Gives the files in small pieces, so that a kill falls into the middle of one."""

    def do_GET(self):
        content = FILES[Path(self.path).name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            for start in range(0, len(content), 20_000):
                self.wfile.write(content[start : start + 20_000])
                sleep(0.002)
        except OSError:  # the reader was killed
            pass

    def log_message(self, *_):
        pass


@contextmanager
def _serving():
    """The address of a server in a process of its own: children are forked without threads."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    process = os.fork()
    if not process:
        try:
            server.serve_forever()
        finally:
            os._exit(0)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    server.socket.close()
    try:
        yield address
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)


def _downloader(address):
    from torch_geometric.data import download_url

    def download(root, name):
        for file in FILES:
            with flagged():
                download_url(f"{address}/{file}", str(Path(root, name, "raw")), log=False)

    return lambda collection: download


def downloads(folder, stream, tally, kills):
    """The cache has a graph in full or not at all, and the next download completes it."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    files = FileSet(reader="npz", folder="Made/graph/raw", files=hashes, pyg="graph")
    with _serving() as address:

        def fetch(cache):
            atomic, fetching._downloader = fetching.write_atomic, _downloader(address)

            def write(content, path):
                with flagged():
                    atomic(content, path)

            fetching.write_atomic = write
            fetching.store(cache, files, fetching.from_web(files, lambda line: None))

        seconds, ended = run_alone(partial(fetch, folder / "alone"))
        tally.check(ended, "a download fails when left alone")
        for number in range(kills):
            cache = folder / f"cache{number}"
            kill_during(partial(fetch, cache), stream, seconds, tally, aimed=True)
            found = sorted(cache.rglob("part*"))
            good = all(path.read_bytes() == FILES[path.name] for path in found)
            tally.check(good, f"{cache} has half a file")
            if number % 5 == 0:
                tally.check(run_alone(partial(fetch, cache))[1], f"{cache} cannot be completed")
                tally.check(len(list(cache.rglob("part?"))) == len(FILES), f"{cache} lacks files")
            shutil.rmtree(cache, ignore_errors=True)


def packing(folder, stream, tally, kills):
    """A pack that is killed again and again ends with the files of one that was left alone."""
    import duckdb  # noqa: F401 - once, here: a kill is to fall into packing

    from attack.fuzz.readers.tables import frames
    from evengraph.disk import pack as make

    for name, frame in zip(("nodes", "edges"), frames(), strict=True):
        frame.to_csv(folder / f"{name}.csv", index=False)

    def pack(path):
        _watch_packing()
        make(folder / "nodes.csv", path, edges=folder / "edges.csv")

    seconds, ended = run_alone(partial(pack, folder / "alone"))
    tally.check(ended, "packing fails when left alone")
    wanted = PackedGraph.open(folder / "alone", verify=True).content_hash
    number = 0
    while tally.kills < kills and not tally.failures:
        path = folder / f"killed{number}"
        number += 1
        while not kill_during(partial(pack, path), stream, seconds, tally, aimed=True):
            if path.exists():  # renamed just before the kill
                break
        found = PackedGraph.open(path, verify=True).content_hash
        tally.check(found == wanted, f"{path} differs")
        left = sorted(item.name for item in folder.glob(f".{path.name}*"))
        tally.check(not left, f"{left} are left beside {path}")


def _watch_packing():
    """Let the parent see when arrays and journals are written."""
    for kind, name in ((ArrayFile, "append"), (PackWriter, "write"), (PackWriter, "finish")):
        setattr(kind, name, _flagging(getattr(kind, name)))


def _flagging(write):
    def writing(*arguments, **options):
        with flagged():
            return write(*arguments, **options)

    return writing
