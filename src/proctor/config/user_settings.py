"""Your own settings, for every project: settings.toml in your configuration folder.

    upload = "always"       # trace every local run to the server you are logged in to

PROCTOR_UPLOAD=1 or 0 overrides the file, and --upload or --no-upload overrides both.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from proctor.config.toml_file import FileProblems, read_toml
from proctor.errors import ConfigError, did_you_mean

FILE = "settings.toml"
UPLOAD_VARIABLE = "PROCTOR_UPLOAD"
UPLOAD_CHOICES = {"always": True, "never": False}
SWITCHES = {"1": True, "true": True, "always": True, "0": False, "false": False, "never": False, "": False}


class UserSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the file may say."""

    upload: bool = False
    """Whether local runs are uploaded without being asked for."""


def user_config_folder(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CONFIG_HOME")
    if base:
        return Path(base) / "proctor"
    import platformdirs

    return platformdirs.user_config_path("proctor")


def read_user_settings(environ: Mapping[str, str]) -> UserSettings:
    """The settings of the file, which need not exist, with those of the environment above them."""
    file = user_config_folder(environ) / FILE
    settings = read_settings_file(file) if file.exists() else UserSettings()
    switch = environ.get(UPLOAD_VARIABLE)
    if switch is None:
        return settings
    if switch.lower() not in SWITCHES:
        raise ConfigError(f"{UPLOAD_VARIABLE} is {switch!r}; set it to 1 or 0.")
    return UserSettings(upload=SWITCHES[switch.lower()])


def read_settings_file(path: Path) -> UserSettings:
    file = read_toml(path)
    findings = FileProblems(file)
    for name in file.data:
        if name not in UserSettings.__struct_fields__:
            known = did_you_mean(name, UserSettings.__struct_fields__)
            findings.add((name,), f"unknown setting {name!r}{known}")
    upload = file.data.get("upload", "never")
    if upload not in UPLOAD_CHOICES:
        findings.add(("upload",), '\'upload\' must be "always" or "never".')
    findings.raise_any()
    return UserSettings(upload=UPLOAD_CHOICES[upload])
