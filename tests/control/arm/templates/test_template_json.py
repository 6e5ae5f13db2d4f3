"""Templates in the JSON that people write and `az deployment group create -f` sends on as it is."""

import json
import time
from typing import Any, Final

import pytest

from forewarned.control.arm.requests import LARGEST_BODY
from forewarned.control.arm.templates.template_json import UnendedCommentError, standard_json
from tests.control.arm.emulator import COMPUTE, GROUP, Emulator

ONE: Final = f"{GROUP}/providers/Microsoft.Resources/deployments/by-hand"
SET: Final = f"{COMPUTE}/availabilitySets/a1"

TEMPLATE: Final = r"""{
  // A comment, with "quotes" and a /* that opens nothing.
  "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
  "contentVersion": "1.0.0.0", /* one over
     several lines: "resources": [] // */
  "parameters": {"motto": {"type": "string", "defaultValue": "two
lines,	a tab and \"// no comment\" /* nor this */"}},
  "resources": [
    {
      "type": "Microsoft.Compute/availabilitySets", /**/ "apiVersion": "2024-11-01",
      "name": "a1", // the end of a line
      "location": "[resourceGroup().location]",
      "tags": {"template": "http://a/*/b", "end": "\\"}
    }
  ],
  "outputs": {"motto": {"type": "string", "value": "[parameters('motto')]"}}
}"""
MOTTO: Final = 'two\nlines,\ta tab and "// no comment" /* nor this */'


def as_az_sends(template: str, **properties: object) -> bytes:
    """What `JsonCTemplatePolicy` of azure-cli makes: the file's text behind a key without quotes."""
    around = json.dumps({"properties": {"mode": "Incremental", "parameters": {}, **properties}})
    return (around[:-2] + ", template:" + template + "}}").encode()


async def test_a_template_is_taken_with_comments_and_lines_as_az_sends_its_file(
    arm: Emulator,
) -> None:
    validated = await arm.send("POST", f"{ONE}/validate", as_az_sends(TEMPLATE))
    deployed = await arm.send("PUT", ONE, as_az_sends(TEMPLATE))

    assert (validated.status_code, deployed.status_code) == (200, 201), deployed.text
    assert (await arm.good("GET", SET))["tags"] == {"template": "http://a/*/b", "end": "\\"}
    shown = (await arm.good("GET", ONE))["properties"]
    assert shown["outputs"] == {"motto": {"type": "String", "value": MOTTO}}


async def test_only_deployments_take_such_a_body(arm: Emulator) -> None:
    body = b'{"location": "local", /* here */ "properties": {}}'

    response = await arm.send("PUT", SET, body)

    assert response.status_code == 400
    assert response.json()["error"]["code"] == "InvalidRequestContent"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{} // the file's last line", "a // comment has no end of line after it"),
        ("{ /* {} ", "a /* comment is never closed"),
        ('{"a": template}', "it is not JSON"),
        ("{templates: 1}", "it is not JSON"),
        ("{'a': 1}", "it is not JSON"),
        ('{"a": "\\\n"}', "it is not JSON"),
        ('{"a": "', "it is not JSON"),
        ('{"a":' * 100 + "1" + "}" * 100, "nested deeper"),
    ],
)
async def test_what_is_no_template_even_so_is_refused_and_changes_nothing(
    arm: Emulator, template: str, words: str
) -> None:
    response = await arm.send("PUT", ONE, as_az_sends(template))

    assert response.status_code == 400
    assert words in response.json()["error"]["message"]
    assert (await arm.ask("GET", ONE)).status_code == 404


@pytest.mark.parametrize(
    "value",
    [
        {"a": "//", "b": ["/*", "*/"], "template": {"template": 'x:"\\'}, "c": 1.5e3},
        {"a\n/*": "\u2028 \x00 é \\\\", "true": [True, False, None]},
    ],
)
def test_json_that_is_standard_already_stays_as_it_is(value: Any) -> None:
    raw = json.dumps(value).encode()

    assert standard_json(raw) == raw


@pytest.mark.parametrize(
    "unit", [b'"\\"', b"template ", b"/*/", b"aaaa", b'"a//', b"\\", b"//\n", b"template:"]
)
def test_a_large_body_is_read_in_a_moment_whatever_is_in_it(unit: bytes) -> None:
    raw = b'"' + unit * (LARGEST_BODY // 8 // len(unit))
    started_at = time.process_time()

    try:
        standard_json(raw)
        standard_json(raw[1:])
    except UnendedCommentError:
        pass

    # A fifth of a second. What grows with the square of the length takes many minutes.
    assert time.process_time() - started_at < 10
