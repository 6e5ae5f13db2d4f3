"""Templates: their expressions, their parameters and the order of their resources."""

from dataclasses import replace
from typing import Any, Final

import pytest

from forewarned.control.arm.errors import ArmError
from forewarned.control.arm.templates.expressions import Allowance, Surroundings, evaluated, nothing
from forewarned.control.arm.templates.template import Template, read_deployment
from forewarned.service.azure.models.documents import Fields, InvalidPropertyError

PLACE: Final = Surroundings(subscription="S", group="G", location="local")
AROUND: Final = Surroundings(
    subscription="S",
    group="G",
    location="local",
    parameters={"size": "big", "secret": None, "list": ["a", "b"]},
    variables={"lb": "[resourceId('N/lbs', 'one')]", "deep": {"Key": "value"}},
    reference={"web": {"properties": {"Id": "x"}, "sku": {"name": "y"}}}.get,
    index=3,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("[[not one]", "[not one]"),
        ("['it''s']", "it's"),
        ("[parameters('SIZE')]", "big"),
        ("[parameters('secret')]", None),
        ("[parameters('list')[1]]", "b"),
        ("[variables('deep').key]", "value"),
        ("[variables('deep')['KEY']]", "value"),
        ("[concat('a', parameters('size'), copyIndex(), copyIndex(1))]", "abig34"),
        ("[concat(parameters('list'), parameters('list'))]", ["a", "b", "a", "b"]),
        ("[resourceId('N/t', 'n')]", "/subscriptions/S/resourceGroups/G/providers/N/t/n"),
        (
            "[resourceId('N/t/u', 'n', 'm')]",
            "/subscriptions/S/resourceGroups/G/providers/N/t/n/u/m",
        ),
        ("[resourceId('H', 'N/t', 'n')]", "/subscriptions/S/resourceGroups/H/providers/N/t/n"),
        ("[resourceId('Z', 'H', 'N/t', 'n')]", "/subscriptions/Z/resourceGroups/H/providers/N/t/n"),
        (
            "[concat(variables('lb'), '/pools/', 'p')]",
            "/subscriptions/S/resourceGroups/G/providers/N/lbs/one/pools/p",
        ),
        ("[reference('web')]", {"Id": "x"}),
        ("[reference('web', providers('N', 't').apiVersions[0]).id]", "x"),
        ("[reference('web', '2020-01-01', 'Full').sku.name]", "y"),
        ("[resourceGroup().location]", "local"),
        ("[subscription().subscriptionId]", "S"),
        ("[toLower('ABC')]", "abc"),
    ],
)
def test_what_clients_write_is_evaluated(text: str, expected: object) -> None:
    assert evaluated({"deep": [text]}, AROUND) == {"deep": [expected]}


@pytest.mark.parametrize(
    "text",
    [
        "[uniqueString('a')]",
        "[concat('a', uniqueString('b'))]",
        "[concat('a'",
        "[concat('a')]]",
        "[concat('a' 'b')]",
        "[concat(true)]",
        "['a'.b]",
        "[parameters('list')[9]]",
        "[parameters('list')['a']]",
        "[variables('deep').other]",
        "[resourceId('N/t')]",
        "[resourceId('n')]",
        "[resourceId('N/t', 'n', 'm')]",
        "[resourceId(1, 'N/t', 'n')]",
        "[concat(parameters('secret'), 'x')]",
        "[]",
        "[)]",
        "[§]",
        "[toLower(1)]",
        "[" + "concat(" * 100 + ")" * 100 + "]",
    ],
)
def test_what_is_not_known_stays_as_it_is(text: str) -> None:
    assert evaluated(text, AROUND) == text


@pytest.mark.parametrize(
    "text", ["[parameters('other')]", "[variables('other')]", "[reference('other')]"]
)
def test_what_names_something_that_is_not_there_is_refused(text: str) -> None:
    with pytest.raises(ArmError, match="other"):
        evaluated(text, AROUND)


def test_variables_that_name_each_other_without_end_are_refused() -> None:
    template = _template([_resource("[variables('a')]")], variables={"a": "[variables('a')]"})

    with pytest.raises(ArmError, match="in a cycle"):
        template.planned()


@pytest.mark.parametrize("joined", ["[concat({0}, {0})]", ["[{0}]", "[{0}]"]])
def test_a_template_can_not_grow_without_bounds(joined: Any) -> None:
    variables: dict[str, Any] = {"v0": "0123456789abcdef" * 4}
    for number in range(1, 30):
        inner = f"variables('v{number - 1}')"
        is_text = isinstance(joined, str)
        variables[f"v{number}"] = (
            joined.format(inner) if is_text else [each.format(inner) for each in joined]
        )
    template = _template([{**_resource("x"), "tags": "[variables('v29')]"}], variables=variables)

    with pytest.raises(ArmError, match="too large"):
        template.planned()


def test_lists_of_parameters_can_not_be_joined_without_bounds() -> None:
    around = replace(AROUND, parameters={"p": [0] * 1000}, allowance=Allowance())
    joined = ", ".join(["parameters('p')"] * 200)

    with pytest.raises(ArmError, match="too large"):
        evaluated(f"[concat({joined})]", around)


def test_parameters_have_given_values_or_usual_ones() -> None:
    template = _template(
        [_resource("[concat(parameters('a'), parameters('b'))]")],
        parameters={"A": {"type": "string"}, "b": {"defaultValue": "[resourceGroup().name]"}},
        given={"a": {"value": "given"}},
    )

    assert [each.name for each in template.planned()] == ["givenG"]


@pytest.mark.parametrize(
    ("parameters", "given"),
    [({"a": {"type": "string"}}, {}), ({}, {"a": {"value": 1}}), ({"a": {}}, {"a": {}})],
)
def test_parameters_and_their_values_must_fit(parameters: Any, given: Any) -> None:
    with pytest.raises(ArmError, match="'a'"):
        _template([], parameters=parameters, given=given).planned()


def test_a_secure_value_is_neither_used_nor_shown() -> None:
    template = _template(
        [{**_resource("x"), "properties": {"adminPassword": "[parameters('password')]"}}],
        parameters={"password": {"type": "securestring"}, "n": {"type": "int"}},
        given={"password": {"value": "hunter2"}, "n": {"value": 1}},
        outputs={"p": {"type": "securestring", "value": "[parameters('password')]"}},
    )

    [planned] = template.planned()

    assert planned.body == {"properties": {"adminPassword": None}}
    assert template.outputs(nothing) == {"p": {"type": "SecureString"}}
    assert template.shown_parameters() == {
        "password": {"type": "SecureString"},
        "n": {"type": "Int", "value": 1},
    }


@pytest.mark.parametrize(
    "called",
    [
        "b",
        "n/t/b",
        "N/t/B",
        "[resourceId('N/t', 'b')]",
        "[concat('N/t/', 'b')]",
    ],
)
def test_resources_come_after_those_they_depend_on(called: str) -> None:
    template = _template([_resource("a", called), _resource("b"), _resource("c", "a")])

    assert [each.name for each in template.planned()] == ["b", "a", "c"]


def test_a_part_comes_after_its_whole() -> None:
    rule = {"type": "N/t/rules", "name": "lb/rule", "dependsOn": ["[concat('N/t/', 'lb')]"]}

    ordered = _template([rule, _resource("lb")]).planned()

    assert [each.path.rpartition("/providers/")[2] for each in ordered] == [
        "N/t/lb",
        "N/t/lb/rules/rule",
    ]


def test_copies_are_numbered_and_can_be_waited_for_together() -> None:
    copied = {**_resource("[concat('nic', copyIndex())]"), "copy": {"name": "loop", "count": 2}}

    ordered = _template([_resource("vm", "loop"), copied]).planned()

    assert [each.name for each in ordered] == ["nic0", "nic1", "vm"]


def test_a_resource_under_a_condition_that_is_not_met_is_left_out() -> None:
    template = _template([{**_resource("a"), "condition": False}, _resource("b")])

    assert [each.name for each in template.planned()] == ["b"]


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ([{"type": "N/t", "name": "a", "dependsOn": ["b"]}], "not defined"),
        ([{"type": "N/t", "name": "a", "dependsOn": "b"}], "dependsOn"),
        (
            [
                {"type": "N/t", "name": "a", "dependsOn": ["b"]},
                {"type": "N/t", "name": "b", "dependsOn": ["a"]},
            ],
            "circular",
        ),
        ([{"type": "N/t", "name": "a"}, {"type": "n/T", "name": "A"}], "more than once"),
        ([{"type": "N/t", "name": "a/b"}], "segments"),
        ([{"type": "N", "name": "a"}], "segments"),
        ([{"type": "N/t"}], "segments"),
        ([{"type": "N/t", "name": 7}], "name"),
        ([{"type": "N/t", "name": "a", "copy": {"count": "many"}}], "count"),
        ([{"type": "N/t", "name": "a", "copy": {"count": 10_000}}], "count"),
        ([{"type": "N/t", "name": "a", "copy": 3}], "copy"),
        ([{"type": "N/t", "name": "a", "resources": [{}]}], "nested resources"),
        ([{"type": "N/t", "name": f"a{at}"} for at in range(801)], "800"),
        (["text"], "resources"),
        ("text", "resources"),
    ],
)
def test_a_template_that_makes_no_sense_is_refused(resources: Any, why: str) -> None:
    with pytest.raises((ArmError, InvalidPropertyError), match=why):
        _template(resources).planned()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"properties": {}},
        {"properties": {"templateLink": {"uri": "https://example.com"}}},
        {"properties": {"template": "x"}},
        {"properties": {"template": {}, "mode": "Complete"}},
    ],
)
def test_only_templates_that_are_sent_along_are_read(body: Any) -> None:
    with pytest.raises((ArmError, InvalidPropertyError)):
        read_deployment(body)


def _resource(name: str, *needs: str) -> dict[str, Any]:
    return {"type": "N/t", "name": name, "dependsOn": list(needs)}


def _template(
    resources: Any,
    *,
    parameters: Any = None,
    given: Any = None,
    variables: Any = None,
    outputs: Any = None,
) -> Template:
    template = {
        "resources": resources,
        "parameters": parameters,
        "variables": variables,
        "outputs": outputs,
    }
    return Template(Fields({"template": template, "parameters": given}), PLACE)
