"""S12, S17: the file of principals: what is written is read, and what is wrong admits nobody."""

import logging
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.security import principals
from forewarned.security.identities import Principal, Role
from forewarned.security.principals import FILE, PrincipalsError, PrincipalsFile, parse, render

NAMES = st.from_regex(principals.NAME, fullmatch=True)
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
INSTANTS = st.datetimes(timezones=st.just(UTC))
CLIENT_IDS = st.uuids().map(str)
ALICE = Principal(name="alice", role=Role.ADMIN, token_sha256="a" * 64)
CI = Principal(name="ci", role=Role.READER, client_id="7-7", secret_sha256="b" * 64)


@st.composite
def rosters(draw: st.DrawFn) -> tuple[Principal, ...]:
    names = draw(st.lists(NAMES, unique_by=str.lower, max_size=6))
    found = []
    for name in names:
        role = draw(st.sampled_from(Role))
        if draw(st.booleans()):
            ends = draw(st.none() | INSTANTS)
            token = draw(DIGESTS)
            found.append(Principal(name=name, role=role, token_sha256=token, expires_at=ends))
        else:
            secret, client_id = draw(DIGESTS), draw(CLIENT_IDS)
            found.append(Principal(name=name, role=role, client_id=client_id, secret_sha256=secret))
    keys = [each.token_sha256 or each.client_id for each in found]
    return tuple(found) if len(set(keys)) == len(keys) else ()


@given(rosters())
def test_what_is_written_is_read(roster: tuple[Principal, ...]) -> None:
    assert parse(render(roster)) == roster


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    problems: tuple[str, ...] = ()
    try:
        parse(text)
    except PrincipalsError as error:
        problems = error.mistakes

    assert all(line.startswith(FILE) for line in problems)


def test_every_mistake_is_told_with_its_line() -> None:
    text = f"""\
# people
[[principals]]
name = "al ice"
role = "king"
token_sha256 = "{"a" * 64}"

[[principals]]
role = "reader"
token_sha256 = "short"
colour = "red"

[[principals]]
name = "both"
role = "admin"
token_sha256 = "{"b" * 64}"
client_id = "x"

[[principals]]
name = "bob"
role = "admin"
token_sha256 = "{"c" * 64}"

[[principals]]
name = "BOB"
role = "admin"
token_sha256 = "{"c" * 64}"

[people]
"""

    with pytest.raises(PrincipalsError) as caught:
        parse(text, "p.toml")

    assert caught.value.mistakes == (
        "p.toml:3: principals[0].name: expected up to 64 letters, digits and . _ @ -, beginning with a letter or digit",
        'p.toml:4: principals[0].role: expected reader, approver, maintainer, admin or actuator, got "king"',
        "p.toml:7: principals[1]: the field 'name' is missing",
        "p.toml:9: principals[1].token_sha256: expected 64 hexadecimal digits in lower case",
        "p.toml:10: principals[1].colour: there is no such field",
        "p.toml:12: principals[2]: a principal has either token_sha256, or client_id and secret_sha256",
        "p.toml:24: principals[4].name: the name 'BOB' is given twice",
        "p.toml:26: principals[4].token_sha256: two principals have the same token",
        "p.toml:28: people: there is no such table; each principal is a table [[principals]]",
    )


def test_roles_are_read_in_any_letter_case() -> None:
    text = f'[[principals]]\nname = "alice"\nrole = "ADMIN"\ntoken_sha256 = "{"a" * 64}"\n'

    assert tuple(parse(text, "p.toml")) == (ALICE,)


@pytest.mark.parametrize(
    "text", ["principals = 1", "principals = [1]", "[principals]", "x", "a = {", "[[principals]]"]
)
def test_other_shapes_are_refused(text: str) -> None:
    with pytest.raises(PrincipalsError, match=r"principals\.toml"):
        parse(text)


def test_one_client_id_is_one_principals() -> None:
    twin = Principal(name="twin", role=Role.READER, client_id="7-7", secret_sha256="c" * 64)

    with pytest.raises(PrincipalsError, match="client id '7-7' is given twice"):
        parse(render([CI, twin]))


def test_no_principal_can_be_entered_with_a_token_that_is_anybodys() -> None:
    """S12: the emulator gives whoever is at its machine a token of this subject."""
    ann = Principal(name="ann", role=Role.ADMIN, client_id="Local", secret_sha256="c" * 64)

    with pytest.raises(PrincipalsError, match="the client id 'local' is reserved for the emulator"):
        parse(render([ann]))


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    file = PrincipalsFile(tmp_path)
    assert file.current() == ()

    with principals.edited(tmp_path) as known:
        known.append(ALICE)
    assert file.current() == (ALICE,)

    with principals.edited(tmp_path) as known:
        known[:] = [CI]
    assert file.current() == (CI,)

    (tmp_path / FILE).unlink()
    assert file.current() == ()


def test_a_file_that_breaks_admits_nobody_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_text(render([ALICE]))
    file = PrincipalsFile(tmp_path)
    assert file.current() == (ALICE,)

    (tmp_path / FILE).write_text("[[principals]]\nname = 1\n")
    with caplog.at_level(logging.ERROR):
        seen = [file.current(), file.current()]

    assert seen == [(), ()]
    assert len(caplog.records) == 1
    with pytest.raises(
        PrincipalsError, match=r"principals\.toml:2: principals\[0\]\.name: expected"
    ):
        file.check()


def test_nobody_else_can_read_the_file(tmp_path: Path) -> None:
    with principals.edited(tmp_path / "new") as known:
        known.append(ALICE)

    assert stat.S_IMODE((tmp_path / "new" / FILE).stat().st_mode) == 0o600


def test_an_edit_that_fails_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(render([ALICE]))

    with suppress(RuntimeError), principals.edited(tmp_path) as known:
        known.clear()
        raise RuntimeError

    assert principals.load(tmp_path / FILE) == (ALICE,)
    assert list(tmp_path.glob(".*")) == []


def test_a_broken_file_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("precious = 1\n")

    with pytest.raises(PrincipalsError), principals.edited(tmp_path) as known:
        known.append(ALICE)

    assert (tmp_path / FILE).read_text() == "precious = 1\n"


def test_edits_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    def add(number: int) -> None:
        with principals.edited(tmp_path) as known:
            digest = f"{number:064x}"
            known.append(Principal(name=f"p{number}", role=Role.READER, token_sha256=digest))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(24)))

    assert len(principals.load(tmp_path / FILE)) == 24


def test_an_endless_file_is_not_read_whole(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"#" * (4 << 20) + b"\n")

    with pytest.raises(PrincipalsError, match="larger than 4 MiB"):
        principals.load(tmp_path / FILE)
