"""Import the module of a verifiers environment, from a folder, a file or a package.

Runs in the environment's own Python; knows nothing of Proctor or of what the module defines.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from typing import Any


def import_environment(params: Mapping[str, Any]) -> Any:
    module_name, folder, file = params["module"], params.get("folder"), params.get("file")
    if folder is not None:
        sys.path.insert(0, folder)
    return importlib.import_module(module_name) if file is None else import_file(module_name, file)


def import_file(name: str, file: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
