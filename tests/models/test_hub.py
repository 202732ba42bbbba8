"""Fetching through the real huggingface_hub, from a hub that a thread of this test plays on the loopback address."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from scrimp.core.errors import NetworkError, ResourceError, SpecError, UnknownNameError
from scrimp.models import hub
from scrimp.models.prepare import prepare, tokenizer_folder
from scrimp.models.resolve import resolve

REVISION = "0123456789abcdef0123456789abcdef01234567"
CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 256,
    "max_position_embeddings": 128,
}
FILES = {
    "config.json": json.dumps(CONFIG).encode(),
    "tokenizer.json": b"{}",
    "model.safetensors": b"weights",
    "consolidated.safetensors": b"the same weights again",
    "pytorch_model.bin": b"pickle",
    "modeling_own.py": b"print('code')",
}


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as a snapshot download needs."""

    files: ClassVar[Mapping[str, bytes]] = FILES
    sent: ClassVar[list[str]] = []

    def do_HEAD(self) -> None:
        """Headers of a file."""
        self._answer(body=False)

    def do_GET(self) -> None:
        """A listing or a file."""
        self._answer(body=True)

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""

    def _answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        if "/gated/" in path:
            self._send(403, b"{}", body=body, headers={"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"})
        elif path.startswith("/api/models/owner/model"):
            listing = [{"type": "file", "path": n, "size": len(c), "oid": _etag(c)} for n, c in self.files.items()]
            info = {"id": "owner/model", "sha": REVISION, "siblings": [{"rfilename": name} for name in self.files]}
            self._send(200, json.dumps(listing if "/tree/" in path else info).encode(), body=body)
        elif path.startswith("/owner/model/resolve/") and path.rpartition("/")[2] in self.files:
            name = path.rpartition("/")[2]
            if body:
                self.sent.append(name)
            headers = {"ETag": f'"{_etag(self.files[name])}"', "X-Repo-Commit": REVISION}
            self._send(200, self.files[name], body=body, headers=headers)
        else:
            self._send(404, b"{}", body=body, headers={"X-Error-Code": "RepoNotFound"})

    def _send(self, status: int, content: bytes, *, body: bool, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


def _etag(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


@pytest.fixture
def online(tmp_path: Path) -> Iterator[tuple[dict[str, str], type[Hub]]]:
    """An environment whose hub is a thread here, and that hub."""
    handler = type("OwnHub", (Hub,), {"sent": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        env = {"HOME": str(tmp_path), "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}"}
        yield env, handler
        server.shutdown()
        thread.join()


def test_a_hub_id_is_resolved_from_its_small_files_and_prepared_with_its_weights(online: Any):
    env, server = online
    source = resolve("owner/model", env=env)
    assert (source.name, source.kind, source.folder, source.revision) == ("owner/model", "hub", None, REVISION)
    assert source.shape.layers == 2
    assert sorted(server.sent) == ["config.json", "tokenizer.json"]
    assert tokenizer_folder(source, env=env) is not None

    lines: list[str] = []
    ready = prepare(source, env=env, report=lines.append)
    assert "downloading owner/model" in lines[0]
    folder = Path(ready.folder or "")
    assert sorted(p.name for p in folder.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
    offline = {**env, "HF_HUB_OFFLINE": "1"}
    assert resolve("OWNER/model", env=offline) == ready


def test_a_model_with_pickled_weights_only_is_refused_unless_asked(online: Any):
    env, server = online
    server.files = {name: FILES[name] for name in ("config.json", "pytorch_model.bin")}
    source = resolve("owner/model", env=env)
    with pytest.raises(SpecError, match="no safetensors of owner/model"):
        prepare(source, env=env, report=print)
    assert "pytorch_model.bin" not in server.sent
    ready = prepare(source, env={**env, "SCRIMP_ALLOW_PICKLE": "1"}, report=print)
    assert (Path(ready.folder or "") / "pytorch_model.bin").is_file()


def test_an_adapter_on_the_hub_is_not_taken_for_a_model(online: Any):
    env, server = online
    server.files = {"adapter_config.json": b"{}", "LICENSE": b"text"}
    with pytest.raises(SpecError, match=r"has no config\.json"):
        resolve("owner/model", env=env)


def test_a_gated_model_asks_for_a_token(online: Any):
    env, _ = online
    with pytest.raises(NetworkError, match="accepted its licence") as caught:
        resolve("gated/model", env=env)
    assert "HF_TOKEN" in caught.value.next_step


def test_a_model_that_the_hub_does_not_have(online: Any):
    env, _ = online
    with pytest.raises(UnknownNameError, match="no public model") as caught:
        resolve("qwen/qwen3-8c", env=env)
    assert "Qwen/Qwen3-8B" in caught.value.expected


def test_a_full_disk_is_refused_before_the_download(online: Any, monkeypatch: pytest.MonkeyPatch):
    env, server = online
    source = resolve("owner/model", env=env)
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    with pytest.raises(ResourceError, match="1000 B free"):
        prepare(source, env=env, report=print)
    assert "model.safetensors" not in server.sent
