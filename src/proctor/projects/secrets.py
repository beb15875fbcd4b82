"""The secrets that a recipe requires, put where the rollout's code looks for them: into variables.

A file that was named wins over the environment. All that are missing are reported at once; no message repeats
a value. Knows nothing of how a file is read.
"""

from __future__ import annotations

from collections.abc import Mapping

from proctor.config.experiment import RecipeFile
from proctor.errors import ConfigError


def resolve_secrets(
    recipe: RecipeFile, from_file: Mapping[str, str], environ: Mapping[str, str]
) -> dict[str, str]:
    """The values of all required secrets."""
    required = recipe.recipe.secrets
    known = {**environ, **from_file}
    missing = [name for name in required if not known.get(name)]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise ConfigError(
            f"{recipe.locate('secrets', 'required')}: {', '.join(missing)} {are} not set; set the variable, "
            f"or name a file of NAME=VALUE lines with --secrets-file."
        )
    return {name: known[name] for name in required}
