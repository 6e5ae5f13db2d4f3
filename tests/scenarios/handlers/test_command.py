"""What a handler is started with."""

from pathlib import Path

from forewarned.scenarios.handlers.command import CommandLine
from forewarned.scenarios.ports import Endpoint

AT = Endpoint(
    url="http://127.0.0.1:7",
    vm="web_0",
    folder=Path("/folder"),
    environment={"http_proxy": "http://127.0.0.1:7"},
)


def test_placeholders_are_filled_wherever_they_stand_and_other_braces_stay() -> None:
    command = CommandLine(words=["h", "--url={endpoint}/x", "{vm}", "{folder}/state", "{other}{}"])

    assert command.filled(AT) == [
        "h",
        "--url=http://127.0.0.1:7/x",
        "web_0",
        "/folder/state",
        "{other}{}",
    ]
    assert command.has_endpoint
    assert not CommandLine(words=["h"]).has_endpoint


def test_the_environment_has_the_endpoint_a_folder_and_only_the_proxies_of_the_scenario() -> None:
    command = CommandLine(words=["h"], endpoint_variable="IMDS_URL")

    variables = command.variables(AT)

    assert command.has_endpoint
    assert variables["IMDS_URL"] == variables["FOREWARNED_ENDPOINT"] == AT.url
    assert variables["STATE_DIRECTORY"] == variables["TMPDIR"] == "/folder"
    assert variables["http_proxy"] == AT.url
    assert variables["HTTP_PROXY"] is variables["NO_PROXY"] is variables["https_proxy"] is None
