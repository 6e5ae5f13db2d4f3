"""What the manual says of `forewarned doctor`."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FINDING = re.compile(r'(?:problem|warning|note)\(\s*"(\w+)"')


def test_every_code_of_a_finding_is_in_the_manual() -> None:
    manual = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    modules = (ROOT / "src" / "forewarned" / "cli" / "doctor").glob("*.py")
    codes = {code for module in modules for code in FINDING.findall(module.read_text())}

    assert len(codes) > 30
    assert {code for code in codes if f"`{code}`" not in manual} == set()
