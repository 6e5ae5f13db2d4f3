"""Whoever builds a release gets our bytes, so anyone can check what they were given."""

import os
import shutil
from pathlib import Path

from tools.release.python_distributions import ROOT, build_sdist, build_wheel, unpack_sdist
from tools.release.pyz import build_pyz


def test_the_sdist_builds_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    tree = unpack_sdist(sdist, tmp_path / "tree")

    again = build_wheel(tmp_path / "dist", source=tree)

    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_the_sdist_builds_itself(sdist: Path, tmp_path: Path) -> None:
    tree = unpack_sdist(sdist, tmp_path / "tree")

    again = build_sdist(tmp_path / "dist", source=tree)

    assert again.read_bytes() == sdist.read_bytes()


def test_neither_the_folder_nor_the_umask_nor_a_files_age_is_in_them(
    wheel: Path, sdist: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "another place"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv*", "dist", ".*_cache"))
    for path in tree.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700 if path.stat().st_mode & 0o100 else 0o600)

    assert build_wheel(tmp_path / "dist", source=tree).read_bytes() == wheel.read_bytes()
    assert build_sdist(tmp_path / "dist", source=tree).read_bytes() == sdist.read_bytes()


def test_the_one_file_is_the_same_each_time(pyz: Path, tmp_path: Path) -> None:
    assert build_pyz(tmp_path).read_bytes() == pyz.read_bytes()
