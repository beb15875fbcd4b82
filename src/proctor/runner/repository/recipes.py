"""The recipes of a commit: read in the sandbox, each checked as the command line checks the file.

Knows nothing of servers.
"""

from __future__ import annotations

from pathlib import Path

from proctor.config.experiment import parse_recipe
from proctor.config.toml_file import decode_text, parse_toml
from proctor.errors import ConfigError
from proctor.projects.layout import RECIPES
from proctor.runner.repository.git import Repository, RepositoryError, TreeFile
from proctor.runner.repository.request import FetchedRecipe

ENDING = ".toml"
MOST_RECIPES = 100
LARGEST_RECIPE = 32 * 1024
LONGEST_PROBLEM = 2_000


def list_recipes(repository: Repository, commit: str) -> list[FetchedRecipe]:
    """Those in configs/eval, by name; none if that is not a folder."""
    tree = repository.find_tree(commit, RECIPES)
    if tree is None:
        return []
    try:
        files = repository.list_direct_files(tree, ENDING, MOST_RECIPES)
    except RepositoryError as error:
        return [FetchedRecipe(path=RECIPES, problem=str(error))]
    return [read_recipe_file(repository, file) for file in files]


def read_recipe_file(repository: Repository, file: TreeFile) -> FetchedRecipe:
    path = f"{RECIPES}/{file.path}"
    if file.size > LARGEST_RECIPE:
        return FetchedRecipe(path=path, problem=f"It has more than {LARGEST_RECIPE // 1024} KB.")
    try:
        _, content = next(repository.read_files([file], RECIPES))
        file_ = parse_recipe(parse_toml(decode_text(Path(path), content), Path(path))).file
    except (ConfigError, RepositoryError) as error:
        message = str(error).replace(f"{path}:", "Line ")
        return FetchedRecipe(path=path, problem=message[:LONGEST_PROBLEM].strip())
    return FetchedRecipe(path=path, recipe=file_.data)
