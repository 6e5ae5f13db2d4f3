"""Settings as they come from a file here, from flags and from an environment."""

from pathlib import Path

import pytest

from forewarned.runtime.settings import Resolved, SettingsError, load


def resolve(file: str = "", *, flags: dict[str, object] | None = None, **environ: str) -> Resolved:
    if file:
        Path("forewarned.toml").write_text(file)
    return load(flags=flags or {}, environ=environ)


def problems(file: str = "", *, flags: dict[str, object] | None = None, **environ: str) -> str:
    with pytest.raises(SettingsError) as refused:
        resolve(file, flags=flags, **environ)
    return str(refused.value)
