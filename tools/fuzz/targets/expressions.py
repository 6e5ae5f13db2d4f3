"""Templates of ARM: whatever they are, they are read, or refused with an error of ARM's."""

import json
from dataclasses import replace
from typing import Any, Final

import msgspec

from forewarned.control.arm.errors import ArmError
from forewarned.control.arm.templates.expressions import Allowance, Surroundings, evaluated
from forewarned.control.arm.templates.template import Template, read_deployment
from forewarned.control.arm.templates.template_json import UnendedCommentError, standard_json
from forewarned.core.errors import RefusalError

_EXPRESSIONS: Final = (
    "[concat(resourceId('Microsoft.Network/loadBalancers', 'lb'), '/x')]",
    "[parameters('a')]",
    "[variables('v').list[0].name]",
    "[reference(resourceId('Microsoft.Compute/virtualMachines', 'vm')).id]",
    "[format('{0}-{1}', copyIndex(), 'it''s')]",
    "[resourceGroup().location]",
    "[[literal]",
    "[subscription().subscriptionId]",
    "[union(createObject('a', 1), variables('v'))]",
)
_TEMPLATE: Final = {
    "properties": {
        "mode": "Incremental",
        "parameters": {"a": {"value": "b"}},
        "template": {
            "parameters": {"a": {"type": "string", "defaultValue": "[variables('v')]"}},
            "variables": {"v": {"list": [{"name": "[parameters('a')]"}]}},
            "resources": [
                {
                    "type": "Microsoft.Compute/virtualMachines",
                    "name": "[concat('vm', copyIndex())]",
                    "apiVersion": "2024-11-01",
                    "copy": {"name": "loop", "count": 2},
                    "dependsOn": ["[resourceId('Microsoft.Network/virtualNetworks', 'net')]"],
                    "condition": "[equals(parameters('a'), 'b')]",
                },
                {"type": "Microsoft.Network/virtualNetworks", "name": "net", "apiVersion": "1"},
            ],
            "outputs": {"o": {"type": "string", "value": "[reference('net').id]"}},
        },
    }
}
EXAMPLES: Final = (
    *(expression.encode() for expression in _EXPRESSIONS),
    json.dumps(_TEMPLATE).encode(),
    b'{"properties": {template:{ /* why */ "resources": [] // none\n}}}',
)
_AROUND: Final = Surroundings(subscription="8d10da13", group="rg1", location="local")


def check(data: bytes) -> None:
    if data.lstrip()[:1] == b"{":
        _check_template(data)
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    around = replace(
        _AROUND,
        allowance=Allowance(),
        parameters={"a": "b", "n": 3, "secret": None},
        variables={"v": {"list": [{"name": "[parameters('a')]"}], "self": "[variables('v')]"}},
        reference=lambda path: {"id": path},
    )
    try:
        _show(evaluated(text, around))
    except (ArmError, RefusalError) as error:
        _show(str(error))


def _check_template(data: bytes) -> None:
    try:
        body = msgspec.json.decode(standard_json(data))
    except (UnendedCommentError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    try:
        template = Template(read_deployment(body), replace(_AROUND, allowance=Allowance()))
        _show([each.path for each in template.planned()])
        _show(template.outputs(lambda path: {"id": path}))
        _show(template.shown_parameters())
    except (ArmError, RefusalError) as error:
        _show(str(error))


def _show(answer: Any) -> None:  # JSON
    """As it is sent: what can't be written as JSON would be an answer of 500."""
    msgspec.json.encode(answer)
