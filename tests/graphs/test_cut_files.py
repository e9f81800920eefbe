"""A mapped file that is cut while it is in use: one error, where the system would kill the process (SIGBUS)."""

import json
import subprocess
import sys

import pytest

# Each reads the graph `data`, which is on disk.
READS = {
    "random walks": "RandomWalk(data, roots=9, length=3).sample",
    "neighbors": "Neighbors(data, seeds=9, fanouts=[3, 3]).sample",
    "clusters": "Clusters(data, clusters=3, method='bfs').sample",
    "the whole graph": "FullGraph(data).sample",
    "a set of graphs": "Graphs(data, per_batch=2).sample",
    "a view": "lambda: DropEdges(0.5)(data)",
    "a check": "lambda: check_graph(data)",
    "a fingerprint": "lambda: fingerprint(data)",
    "a copy": "lambda: save_mapped(data, tempfile.mkdtemp(dir=home))",
    "an encoder": "partial(encode, mario.encoders.GCN(60, hidden_channels=4), data)",
    "an encoder of PyG": "partial(encode, torch_geometric.nn.GCN(60, 4, num_layers=1), data)",
    "embeddings": "partial(small().fit(data).transform, data)",
    "another fit": "lambda: small().fit(data)",
}
FILES = ("x", "edge_index", "edge_weight", "starts", "batch")
NEVER_READ = {  # the files that a kind of reading has no use for, or has in memory already
    "the whole graph": ("starts",),
    "a view": ("starts",),
    "a check": ("starts",),
    "a fingerprint": ("starts",),
    "an encoder": ("starts", "batch"),
    "an encoder of PyG": ("starts", "batch"),
    "embeddings": ("starts",),
    "a set of graphs": ("starts",),
    "neighbors": ("edge_index", "starts"),
}

PROGRAM = """
import json, os, shutil, sys, tempfile, traceback, warnings
from functools import partial
import torch, torch_geometric
from torch_geometric.data import Data
import mario
from mario.encoders.apply import encode
from mario.errors import MarioError
from mario.graphs import check_graph, load_mapped, save_mapped
from mario.graphs.fingerprint import fingerprint
from mario.graphs.samplers import Clusters, FullGraph, Graphs, Neighbors, RandomWalk
from mario.views import DropEdges

home, reads, files = sys.argv[1], *map(json.loads, sys.argv[2:])
torch.manual_seed(0)
small = partial(mario.GRACE, epochs=1, steps_per_epoch=2, roots=50, hidden_channels=4)
ends = torch.randint(3000, (2, 9000))
ends = torch.cat([ends, ends.flip(0)], dim=1)
batch = torch.arange(3000) // 1000
ends = ends[:, batch[ends[0]] == batch[ends[1]]]
whole = Data(x=torch.randn(3000, 60), edge_index=ends, edge_weight=torch.rand(ends.size(1)), batch=batch)
alone = Data(x=whole.x, edge_index=ends, edge_weight=whole.edge_weight, batch_of=batch)
save_mapped(whole, f"{home}/set")
save_mapped(alone, f"{home}/graph")
small(), torch_geometric.nn.GCN  # imports both before the first fork

def tried(read, name):
    kind = "set" if "Graphs(" in read else "graph"
    folder = shutil.copytree(f"{home}/{kind}", tempfile.mkdtemp(dir=home), dirs_exist_ok=True)
    data = load_mapped(folder)
    draw = eval(read, {**globals(), "data": data})
    draw()
    # Its first page stays, and several are gone.
    os.truncate(f"{folder}/{'batch_of' if name == 'batch' and kind == 'graph' else name}.npy", 4096)
    for _ in range(3):
        draw()

said = {}
for read in reads:
    for name in files:
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            try:
                tried(reads[read], name)
                ending = "nothing"
            except MarioError as error:
                ending = str(error)
            except BaseException:
                ending = traceback.format_exc()
            os.write(theirs, ending.encode())
            os._exit(0)
        os.close(theirs)
        with open(ours) as heard:
            text = heard.read()
        _, status = os.waitpid(child, 0)
        said[f"{read}: {name}"] = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else text
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a process says that has read a graph before and after one of its files was cut, by reading and file."""
    arguments = [str(tmp_path_factory.mktemp("cut")), json.dumps(READS), json.dumps(FILES)]
    ended = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, str] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("read", READS)
def test_a_file_that_is_cut_while_in_use_is_one_error(said: dict[str, str], read: str, name: str) -> None:
    ending = said[f"{read}: {name}"]
    if name in NEVER_READ.get(read, ()):
        assert ending == "nothing"
    else:
        assert ".npy was changed while it was in use: it had " in ending
        assert "and has 4,096. Load the graph again once the file is complete" in ending
