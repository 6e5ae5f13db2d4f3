"""compose.yaml of the repository, as far as it can be checked without containers."""

from pathlib import Path

import yaml  # type: ignore[import-untyped]  # it comes with mkdocs, without types

from forewarned.runtime.settings import load

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def test_the_emulators_variables_and_the_images_words_are_settings_that_are_accepted() -> None:
    """The image's words are its CMD: flags, in the order in which `serve` takes them."""
    recipe = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
    _, _, words = recipe.partition('\nCMD ["serve", ')
    listed = yaml.safe_load(f"[{words}")
    flags = dict(zip(listed[::2], listed[1::2], strict=True))
    names = {name.removeprefix("--").replace("-", "_"): value for name, value in flags.items()}
    emulator = COMPOSE["services"]["emulator"]

    settings = load(flags=names, environ=emulator["environment"]).settings

    assert settings.hosts == ("emulator",)
    assert str(settings.metadata) == "0.0.0.0:8169"


def test_the_application_is_the_readmes_and_reaches_the_emulator_by_its_name() -> None:
    application = COMPOSE["services"]["application"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    handler = (ROOT / "examples" / "compose" / "handler.py").read_text(encoding="utf-8")

    [mount] = application["volumes"]

    assert (ROOT / mount.partition(":")[0]).is_file()
    assert handler.partition("\n\n")[2] in readme
    assert application["environment"]["FOREWARNED_ENDPOINT"].startswith("http://emulator:8169/")
    assert "emulator" in application["depends_on"]
