"""A small dashboard, as the real one is built: an index, an asset, also compressed, and what to preload."""

from __future__ import annotations

import gzip
from pathlib import Path


def build_small(folder: Path, name: str = "app-1234.js") -> Path:
    (folder / "assets").mkdir(parents=True, exist_ok=True)
    script = b"document.title = 'Proctor';\n" * 100
    (folder / "assets" / name).write_bytes(script)
    (folder / "assets" / f"{name}.gz").write_bytes(gzip.compress(script))
    (folder / "assets" / f"{name}.br").write_bytes(b"as brotli would write it")
    (folder / "index.html").write_text(
        f'<!doctype html><html lang="en"><title>…</title><script type="module" src="/assets/{name}"></script>'
    )
    (folder / "preloads.json").write_text(f'[{{"pattern": "^/runs/[^/]+/t/", "files": ["assets/{name}"]}}]')
    return folder
