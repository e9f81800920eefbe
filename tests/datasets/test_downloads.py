"""Downloads come over connections whose certificate is checked, or not at all."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mario.datasets import CATALOG, find, load_dataset
from mario.datasets.files import fetch_url
from mario.datasets.pyg import PyGDataset
from mario.errors import MarioError

SELF_SIGNED = Path(__file__).with_name("self_signed.pem")
"""A certificate for localhost that nobody has signed, and its key; made for these tests, valid until 2126."""


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "http://localhost:1/file")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"content")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an https server with the certificate above."""
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = ThreadingHTTPServer(("localhost", 0), Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SELF_SIGNED)
    made.socket = context.wrap_socket(made.socket, server_side=True)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"https://localhost:{made.server_address[1]}"
    made.shutdown()
    made.server_close()


def test_a_certificate_that_nobody_signed_is_refused(server: str) -> None:
    with pytest.raises(MarioError, match="certificate verify failed"):
        fetch_url(f"{server}/file")


def test_a_certificate_that_the_machine_trusts_is_taken(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(SELF_SIGNED))
    assert fetch_url(f"{server}/file") == b"content"
    with pytest.raises(MarioError, match="http://localhost:1/file is not an https URL"):
        fetch_url(f"{server}/moved")
    monkeypatch.setattr("mario.datasets.files._MOST", 3)
    with pytest.raises(MarioError, match="more than 3 bytes"):
        fetch_url(f"{server}/file")


@pytest.mark.parametrize("url", ["http://localhost/file", "file:///etc/passwd", "ftp://localhost/file"])
def test_other_connections_are_refused(url: str) -> None:
    with pytest.raises(MarioError, match="is not an https URL"):
        fetch_url(url)


def test_no_dataset_is_taken_from_a_server_that_only_claims_to_be_the_right_one(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyG's own download took whatever came."""
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path))
    monkeypatch.delenv("MARIO_DATA", raising=False)
    for name in [name for name in CATALOG if isinstance(find(name), PyGDataset)]:
        monkeypatch.setattr(type(find(name)), "files_url", server)
        with pytest.raises(MarioError, match="certificate verify failed"):
            load_dataset(name)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_files_come_from_where_pyg_takes_them() -> None:
    import torch_geometric.datasets as pyg

    urls = {}
    for name in CATALOG:
        dataset = find(name)
        if isinstance(dataset, PyGDataset):
            urls[name] = [dataset.url_of(Path(file.path)) for file in dataset.card.files]
            assert all(url.startswith("https://") for url in urls[name])
    assert urls["good-cora"] == [pyg.CitationFull.url.format("cora")]
    assert urls["good-twitch"][0] == f"{pyg.Twitch.url}/DE.npz"
    assert urls["amazon-photo"] == [f"{pyg.Amazon.url}amazon_electronics_photo.npz"]
    assert urls["citation-dblp"] == [pyg.CitationFull.url.format("dblp")]
    assert urls["coauthor-physics"] == [f"{pyg.Coauthor.url}ms_academic_phy.npz"]
    assert urls["coauthor-cs"] == [f"{pyg.Coauthor.url}ms_academic_cs.npz"]
    assert f"{pyg.WebKB.url}/new_data/texas/out1_graph_edges.txt" in urls["good-webkb"]
    assert f"{pyg.WebKB.url}/splits/texas_split_0.6_0.2_9.npz" in urls["good-webkb"]
