"""The URL of a database, as libpq itself reads it: several hosts, TLS, service and password files.

What a URL leaves out comes from libpq's own variables and files, as for every other client.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from psycopg import Error, pq
from psycopg.conninfo import make_conninfo

from forewarned.config.mistakes import did_you_mean
from forewarned.config.values import DatabaseUrl

_PARAMETER: Final = re.compile(r'invalid URI query parameter: "(?P<name>.*)"')
_PER_HOST: Final = ("host", "hostaddr", "port")
_DEFAULTS: Final = {
    # Only a primary can be written to, and only there are documents never older than the last one.
    "target_session_attrs": "read-write",
    "connect_timeout": "3",
    # A server that is gone without a word is noticed in seconds, even while it owes an answer.
    "tcp_user_timeout": "3000",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "3",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The database to connect to."""

    conninfo: str = field(repr=False)
    """For libpq, with the password."""
    where: str
    """For messages."""
    hosts: tuple[str, ...] = field(default=(), repr=False)
    """As `conninfo`, one for each host, if there are several."""


def target(url: DatabaseUrl, *, application: str = "forewarned") -> Target:
    """Raises ValueError, whose message has nothing of the password."""
    given = _given(url)
    preset = {name: value for name, value in _DEFAULTS.items() if name not in given}
    # Not as the URL says: nodes know each other's sessions by their name.
    preset["application_name"] = application
    conninfo = make_conninfo(url.text, **preset)
    hosts = tuple(make_conninfo(conninfo, **each) for each in _each_host(given))
    return Target(conninfo=conninfo, where=_where(given), hosts=hosts)


def _each_host(given: dict[str, str]) -> list[dict[str, str]]:
    """What differs from host to host; none if there is only one."""
    lists = {name: given[name].split(",") for name in _PER_HOST if name in given}
    number = max((len(lists.get(name, ())) for name in ("host", "hostaddr")), default=0)
    if number < 2:
        return []
    return [
        {name: values[place % len(values)] for name, values in lists.items()}
        for place in range(number)
    ]


def _given(url: DatabaseUrl) -> dict[str, str]:
    try:
        options = pq.Conninfo.parse(url.text.encode())
    except Error as error:
        # libpq's messages repeat parts of the URL, and a part may be the password.
        raise ValueError(_why(str(error).strip())) from None
    given = {o.keyword.decode(): o.val.decode() for o in options if o.val is not None}
    ports = given.get("port", "").split(",")
    if not all(port.isdecimal() or not port for port in ports) or "@" in given.get("host", ""):
        raise ValueError(_why(""))
    return given


def _why(message: str) -> str:
    found = _PARAMETER.fullmatch(message)
    if found is not None:
        known = [option.keyword.decode() for option in pq.Conninfo.get_defaults()]
        return (
            "PostgreSQL's client does not know one of the parameters after the question mark"
            f"{did_you_mean(found['name'], known)}"
        )
    return (
        "expected postgresql://USER@HOST:PORT/DATABASE, with @ : / ? and % in a name or password"
        " written as %40 %3A %2F %3F and %25"
    )


def _where(given: dict[str, str]) -> str:
    name = given.get("dbname") or given.get("user")
    hosts = [host for host in given.get("host", "").split(",") if host]
    ports = given.get("port", "").split(",")
    if len(ports) < len(hosts):
        ports = [ports[0]] * len(hosts)
    places = [f"{host}:{port}" if port else host for host, port in zip(hosts, ports, strict=False)]
    database = "the PostgreSQL database" if name is None else f"PostgreSQL database {name}"
    if not places:
        service = given.get("service")
        return database if service is None else f"{database} of service {service}"
    return f"{database} at {' or '.join(places)}"
