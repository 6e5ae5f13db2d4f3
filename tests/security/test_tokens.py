"""S12: tokens that only this server can have made, checked without the library that makes them."""

import base64
import hashlib
import hmac
import json
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from forewarned.security.identities import (
    ISSUER,
    TENANT_ID,
    BadTokenError,
    Bearer,
    TokensUnavailableError,
)
from forewarned.security.signing_keys import KEY_FILE, SharedKeys, SigningKeys
from forewarned.security.tokens import LIFETIME, Tokens
from tests.builders import MINUTE, NOON, SECOND

ARM = "https://localhost:8171"
PATH = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/web"
WEB = Bearer(subject="web", object_id="13f56399-bd52-4150-9748-7190aae1ff21", resource_path=PATH)


class Watch:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
async def tokens(anyio_backend: object, tmp_path: Path, watch: Watch) -> Tokens:
    return await a_server(tmp_path, watch)


async def a_server(
    folder: Path, now: Callable[[], datetime], shared: SharedKeys | None = None
) -> Tokens:
    keys = SigningKeys(folder, shared)
    await keys.prepare()
    return Tokens(keys, now=now)


def unpacked(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def packed(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def claims(text: str) -> Any:  # JSON, which tests look into
    return json.loads(unpacked(text.split(".")[1]))


def forged(header: dict[str, str], body: object, signature: bytes = b"") -> str:
    parts = (json.dumps(header).encode(), json.dumps(body).encode(), signature)
    return ".".join(map(packed, parts))


def signed(body: object, key: ec.EllipticCurvePrivateKey) -> str:
    """By hand: what a server with that key would sign."""
    head = forged({"alg": "ES256", "typ": "JWT"}, body).rpartition(".")[0]
    r, s = decode_dss_signature(key.sign(head.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{head}.{packed(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def own_key(folder: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key((folder / KEY_FILE).read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def files(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


async def test_a_token_says_who_it_is_for_and_for_how_long(tokens: Tokens) -> None:
    token = await tokens.issue(WEB, audience=ARM)

    said = claims(token.text)
    assert said.pop("uti")
    assert said == {
        "iss": ISSUER,
        "aud": ARM,
        "sub": "web",
        "oid": WEB.object_id,
        "appid": WEB.object_id,
        "tid": TENANT_ID,
        "xms_mirid": PATH,
        "iat": int(NOON.timestamp()),
        "nbf": int(NOON.timestamp()),
        "exp": int((NOON + timedelta(hours=1)).timestamp()),
        "ver": "1.0",
    }
    assert (token.not_before, token.expires_at) == (NOON, NOON + LIFETIME)


async def test_the_published_key_verifies_a_token(tokens: Tokens) -> None:
    text = (await tokens.issue(WEB, audience=ARM)).text

    key_set: Any = await tokens.key_set()
    [key] = key_set["keys"]
    x, y = (int.from_bytes(unpacked(key[name])) for name in "xy")
    head, _, signature = text.rpartition(".")
    assert json.loads(unpacked(head.split(".")[0]))["kid"] == key["kid"]
    assert "d" not in key, "the private part stays here"
    raw = unpacked(signature)
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    public.verify(der, head.encode(), ec.ECDSA(hashes.SHA256()))
    with pytest.raises(InvalidSignature):
        public.verify(der, head.encode() + b"x", ec.ECDSA(hashes.SHA256()))


async def test_what_was_issued_is_read_back(tokens: Tokens) -> None:
    read = await tokens.read((await tokens.issue(WEB, audience=ARM)).text)

    assert (read.bearer, read.audience) == (WEB, ARM)


async def test_a_restarted_server_knows_its_tokens(
    tokens: Tokens, tmp_path: Path, watch: Watch
) -> None:
    token = await tokens.issue(WEB, audience=ARM)

    after = await a_server(tmp_path, watch)

    assert (await after.read(token.text)).bearer == WEB


async def test_a_token_is_good_until_it_expires(tokens: Tokens, watch: Watch) -> None:
    token = await tokens.issue(WEB, audience=ARM)

    watch.now = NOON + LIFETIME - SECOND
    await tokens.read(token.text)
    watch.now = NOON + LIFETIME
    with pytest.raises(BadTokenError, match="expired"):
        await tokens.read(token.text)


async def test_a_token_from_the_future_is_refused(tokens: Tokens, watch: Watch) -> None:
    token = await tokens.issue(WEB, audience=ARM)

    watch.now = NOON - MINUTE
    with pytest.raises(BadTokenError, match="clock was set back"):
        await tokens.read(token.text)


async def test_another_servers_token_is_refused(
    tokens: Tokens, tmp_path: Path, watch: Watch
) -> None:
    (tmp_path / "other").mkdir()
    other = await a_server(tmp_path / "other", watch)

    with pytest.raises(BadTokenError, match="not issued by this server"):
        await tokens.read((await other.issue(WEB, audience=ARM)).text)


async def test_nobody_can_leave_the_signature_out(tokens: Tokens) -> None:
    body = claims((await tokens.issue(WEB, audience=ARM)).text)

    for algorithm in ("none", "None", "NONE", ""):
        with pytest.raises(BadTokenError):
            await tokens.read(forged({"alg": algorithm, "typ": "JWT"}, body))


async def test_the_public_key_is_no_shared_secret(tokens: Tokens, tmp_path: Path) -> None:
    """The classic confusion: HS256 with the public key as its secret."""
    body = claims((await tokens.issue(WEB, audience=ARM)).text)
    pem = (
        own_key(tmp_path)
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    head = forged({"alg": "HS256", "typ": "JWT"}, body).rpartition(".")[0]
    mac = hmac.new(pem, head.encode(), hashlib.sha256).digest()

    with pytest.raises(BadTokenError):
        await tokens.read(f"{head}.{packed(mac)}")


@pytest.mark.parametrize("name", ["sub", "aud", "exp", "oid", "xms_mirid"])
async def test_a_claim_that_was_altered_is_noticed(tokens: Tokens, name: str) -> None:
    head, body, signature = (await tokens.issue(WEB, audience=ARM)).text.split(".")
    altered = json.loads(unpacked(body)) | {name: 1 << 40 if name == "exp" else "db"}

    with pytest.raises(BadTokenError, match="altered"):
        await tokens.read(f"{head}.{packed(json.dumps(altered).encode())}.{signature}")


@pytest.mark.parametrize(
    "wrong",
    [
        {"aud": [ARM, "https://elsewhere"]},
        {"sub": 7},
        {"oid": None},
        {"exp": "never"},
        {"exp": 1e300},
        {"exp": 10**30},
        {"nbf": None},
        {"iss": "https://sts.windows.net/"},
        {"xms_mirid": ["/a"]},
    ],
    ids=str,
)
async def test_even_a_signed_token_must_be_of_our_making(
    tokens: Tokens, tmp_path: Path, wrong: dict[str, object]
) -> None:
    body = claims((await tokens.issue(WEB, audience=ARM)).text)
    key = own_key(tmp_path)

    assert (await tokens.read(signed(body, key))).bearer == WEB
    with pytest.raises(BadTokenError):
        await tokens.read(signed(body | wrong, key))


@pytest.mark.parametrize("name", ["iss", "aud", "sub", "oid", "iat", "nbf", "exp"])
async def test_no_claim_may_be_missing(tokens: Tokens, tmp_path: Path, name: str) -> None:
    body = claims((await tokens.issue(WEB, audience=ARM)).text)
    del body[name]

    with pytest.raises(BadTokenError):
        await tokens.read(signed(body, own_key(tmp_path)))


@pytest.mark.parametrize("text", ["", ".", "..", "a.b.c", "é.é.é", "e30.e30.", "x" * 20_000])
async def test_what_is_no_token_is_refused(tokens: Tokens, text: str) -> None:
    with pytest.raises(BadTokenError):
        await tokens.read(text)


async def test_the_key_is_for_nobody_else_to_read(tokens: Tokens, tmp_path: Path) -> None:
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    assert files(tmp_path) == [KEY_FILE]


@pytest.mark.parametrize("content", [b"", b"-----BEGIN", b"\xff\xfe"])
async def test_a_broken_key_is_told_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    (tmp_path / KEY_FILE).write_bytes(content)

    with pytest.raises(TokensUnavailableError, match="remove it, and the server creates a new one"):
        await SigningKeys(tmp_path).prepare()


async def test_a_key_of_another_curve_is_not_used(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).write_bytes(
        ec.generate_private_key(ec.SECP384R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )

    with pytest.raises(TokensUnavailableError, match="no P-256 private key"):
        await SigningKeys(tmp_path).prepare()


async def test_without_a_key_there_are_no_tokens(tmp_path: Path) -> None:
    """A poller never makes one: two would not agree."""
    with pytest.raises(TokensUnavailableError, match="can't be read"):
        await Tokens(SigningKeys(tmp_path)).issue(WEB, audience=ARM)

    assert files(tmp_path) == []


def test_a_poller_loads_no_cryptography_before_the_first_token() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, forewarned.runtime.poller; print({'cryptography', 'jwt'} & set(sys.modules))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "set()"
