"""Templates as `az vm create` and `az vmss create` send them: read, and put in order.

Nothing is made here: what comes out is the list of resources, each after those it depends on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from forewarned.control.arm.errors import ArmError, bad_request
from forewarned.control.arm.templates.expressions import (
    Allowance,
    Surroundings,
    evaluated,
    invalid_template,
    nothing,
    resource_path,
)
from forewarned.service.azure.models.documents import Fields, Json, without

MOST_RESOURCES: Final = 800
"""Azure's own limit."""

_SECURE: Final = frozenset({"securestring", "secureobject"})
_NOT_THE_RESOURCE: Final = ("type", "name", "apiVersion", "dependsOn", "copy", "condition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One resource of a template."""

    type: str
    name: str
    """With its parents' names: `lb/rule`."""
    path: str
    api_version: str
    body: Json
    needs: tuple[str, ...]
    loop: str = ""
    """The name of the copy it is one of."""

    @property
    def names(self) -> set[str]:
        """What others may call it, in folded letters."""
        inner = self.path.partition("/providers/")[2]
        known = (self.name, self.path, f"{self.type}/{self.name}", inner, self.loop)
        return {each.casefold() for each in known if each}


class Template:
    """One template with the values of its parameters. Raises ArmError for what makes no sense."""

    def __init__(self, properties: Fields, place: Surroundings) -> None:
        """`properties` are the deployment's, `place` the resource group it goes to."""
        self.source: Json = properties.raw("template")
        self._template = properties.object("template")
        self._given = properties.object("parameters")
        self._declared = self._template.object("parameters")
        self._place = replace(place, allowance=Allowance())
        """What the usual values of parameters can refer to."""

    def planned(self) -> list[Planned]:
        """In an order in which they can be made. References are known in outputs alone."""
        around = self._around(nothing)
        self._template.objects("resources")
        found: list[Planned] = []
        for resource in self._template.raw("resources") or ():
            found += self._copies(resource, around)
            if len(found) > MOST_RESOURCES:
                raise invalid_template(f"it has more than {MOST_RESOURCES} resources")
        return self._ordered(found)

    def outputs(self, reference: Callable[[str], Mapping[str, Any] | None]) -> Json:
        around = self._around(reference)
        outputs = self._template.object("outputs")
        shown: Json = {}
        for name in outputs:
            output = outputs.object(name)
            type_ = output.text("type") or "Object"
            if type_.lower() in _SECURE:
                shown[name] = {"type": _capital(type_)}
                continue
            value = evaluated(output.raw("value"), around)
            shown[name] = {"type": _capital(type_), "value": value}
        return shown

    def shown_parameters(self) -> Json:
        """For those who look at the deployment: without secrets."""
        values = self._values()
        shown: Json = {}
        for name in self._declared:
            type_ = self._declared.object(name).text("type") or "String"
            shown[name] = {"type": _capital(type_)}
            if type_.lower() not in _SECURE:
                shown[name]["value"] = values[name.lower()]
        return shown

    def _around(self, reference: Callable[[str], Mapping[str, Any] | None]) -> Surroundings:
        variables = self._template.object("variables")
        return replace(
            self._place,
            parameters=self._values(),
            variables={name.lower(): variables.raw(name) for name in variables},
            reference=reference,
        )

    def _values(self) -> dict[str, Any]:
        """Secrets are left out right here."""
        known = {name.lower() for name in self._declared}
        for name in self._given:
            if name.lower() not in known:
                raise invalid_template(
                    f"the parameter '{name[:100]}' is given, but the template does not declare it"
                )
        given = {name.lower(): self._given.object(name) for name in self._given}
        values: dict[str, Any] = {}
        for name in self._declared:
            declared = self._declared.object(name)
            here = given.get(name.lower())
            if (declared.text("type") or "").lower() in _SECURE:
                values[name.lower()] = None
            elif here is not None and "value" in here:
                values[name.lower()] = here.raw("value")
            elif "defaultValue" in declared:
                values[name.lower()] = evaluated(declared.raw("defaultValue"), self._place)
            else:
                raise invalid_template(
                    f"the value for the template parameter '{name[:100]}' is not provided"
                )
        return values

    def _copies(self, resource: Json, around: Surroundings) -> list[Planned]:
        fields = Fields(resource)
        if "copy" not in fields:
            return self._one(resource, around, loop="")
        copy = fields.object("copy")
        count = evaluated(copy.raw("count"), around)
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < MOST_RESOURCES:
            raise copy.wrong("count", f"expected a whole number below {MOST_RESOURCES}")
        loop = copy.text("name") or ""
        return [
            each
            for index in range(count)
            for each in self._one(resource, replace(around, index=index), loop=loop)
        ]

    def _one(self, resource: Json, around: Surroundings, *, loop: str) -> list[Planned]:
        # The expressions of a copy's count are not the resource's.
        whole = evaluated(without(resource, "copy"), around)
        fields = Fields(whole)
        if fields.flag("condition") is False:
            return []
        type_, name = fields.text("type"), fields.text("name")
        if not type_ or not name or type_.count("/") != name.count("/") + 1:
            raise invalid_template(
                f"the resource '{str(name)[:100]}' of type '{str(type_)[:100]}' has a wrong number"
                " of segments: a type has one more than a name"
            )
        if fields.objects("resources"):
            raise invalid_template(
                f"nested resources, as in '{name[:100]}', are not supported here"
            )
        return [
            Planned(
                type=type_,
                name=name,
                path=resource_path(around.subscription, around.group, type_, name.split("/")),
                api_version=fields.text("apiVersion") or "",
                body=without(whole, *_NOT_THE_RESOURCE),
                needs=fields.texts("dependsOn") or (),
                loop=loop,
            )
        ]

    def _ordered(self, planned: list[Planned]) -> list[Planned]:
        needs = self._needs(planned)
        waiting = dict(enumerate(planned))
        ordered: list[Planned] = []
        while waiting:
            ready = [at for at in waiting if not needs[at] & waiting.keys()]
            if not ready:
                names = ", ".join(each.name for each in waiting.values())
                raise invalid_template(f"circular dependency between {names[:300]}")
            ordered += [waiting.pop(at) for at in ready]
        return ordered

    def _needs(self, planned: list[Planned]) -> list[set[int]]:
        """For each resource the numbers of those that must be made before it."""
        called: dict[str, set[int]] = {}
        paths: set[str] = set()
        for at, each in enumerate(planned):
            path = each.path.casefold()
            if path in paths:
                raise invalid_template(f"the resource '{path[:300]}' is defined more than once")
            paths.add(path)
            for name in each.names:
                called.setdefault(name, set()).add(at)
        needs: list[set[int]] = []
        for each in planned:
            wanted = dict.fromkeys(map(str.casefold, each.needs))
            for text in wanted:
                if text not in called:
                    raise invalid_template(
                        f"the resource '{text[:300]}', which '{each.name[:100]}' depends on,"
                        " is not defined in the template"
                    )
            needs.append(set().union(*(called[text] for text in wanted)))
        return needs


def read_deployment(body: Mapping[str, Any]) -> Fields:
    """The properties of a deployment, of which anything can be made. Raises ArmError."""
    properties = Fields(body).object("properties")
    if "template" not in properties:
        raise _unsupported(
            "properties.template must contain the template: linked templates are not supported"
        )
    properties.object("template")
    mode = properties.text("mode") or "Incremental"
    if mode.lower() != "incremental":
        raise _unsupported(f"the mode '{mode[:40]}' is not supported: use Incremental")
    return properties


def _unsupported(why: str) -> ArmError:
    return bad_request("InvalidDeployment", f"The deployment can't be read: {why}.")


def _capital(word: str) -> str:
    """Azure writes types so, however they came."""
    return {"securestring": "SecureString", "secureobject": "SecureObject"}.get(
        word.lower(), word.capitalize()
    )
