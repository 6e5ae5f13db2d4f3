import inspect
import subprocess
import sys
from pathlib import Path

from forewarned import testing


def test_everything_exported_is_there_and_says_what_it_is_for() -> None:
    for name in testing.__all__:
        assert inspect.getdoc(getattr(testing, name)), name
    assert sorted(testing.__all__) == testing.__all__ == dir(testing)


def test_nothing_else_is() -> None:
    assert not hasattr(testing, "Running")


def test_public_methods_say_what_they_do() -> None:
    undocumented = [
        f"{kind.__name__}.{name}"
        for kind in (testing.Event, testing.Fault, testing.Faults, testing.Vm)
        for name, member in inspect.getmembers(kind)
        if not name.startswith("_") and not inspect.getdoc(member)
    ]

    assert undocumented == ["Event.type"]


def test_pytest_loads_the_plugin_without_the_server() -> None:
    code = (
        "import sys, forewarned.testing.plugin;"
        "assert not {'msgspec', 'httptools', 'asyncio.runners'} & set(sys.modules) - BEFORE, 1"
    )
    before = "import sys, pytest; BEFORE = set(sys.modules);"

    done = subprocess.run([sys.executable, "-c", before + code], check=False)

    assert done.returncode == 0


def test_serving_needs_no_more_than_the_extra_installs() -> None:
    absent = ["starlette", "uvicorn", "uvloop", "cryptography", "jwt", "prometheus_client"]
    code = (
        f"import sys; sys.modules |= dict.fromkeys({absent});"
        "from forewarned import testing;\n"
        "with testing.serve() as service: assert service.vm('a').document()['Events'] == []"
    )

    done = subprocess.run([sys.executable, "-c", code], check=False)

    assert done.returncode == 0


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(scheduled_events): pass\n")
    code = (
        "import sys; sys.modules['httptools'] = None; import pytest;"
        "sys.exit(pytest.main(['-p', 'no:cacheprovider', 'test_it.py']))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, check=False, text=True
    )

    assert done.returncode == 1
    assert "pip install '.[testing]'" in done.stdout
