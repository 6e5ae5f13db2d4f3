"""What clients ask of resources that are kept as declared: the same for each type of them."""

from forewarned.control.arm.answers import ArmAnswer, created, no_content, ok, updated
from forewarned.control.arm.errors import interface_in_use, resource_not_found
from forewarned.control.arm.paging import page
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.resources import groups
from forewarned.control.arm.resources.declared import (
    Kind,
    every,
    look_up,
    parts_of,
    put_in,
    put_part_in,
    show,
    shower,
)
from forewarned.control.arm.routes import Operation, delete, patch, put, read
from forewarned.control.arm.services import ArmServices
from forewarned.service.azure.groups import declared
from forewarned.service.azure.models.documents import Fields, Json, decoded
from forewarned.service.azure.models.profiles import new_tags
from forewarned.service.azure.resource_ids import ResourceId, same
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Declaration


def operations_on(kind: Kind) -> tuple[Operation, ...]:
    """All that can be asked of resources of one type."""
    subscription = "/subscriptions/{subscription}"
    group = f"{subscription}/resourceGroups/{{group}}"
    one = f"{group}/providers/{kind.type}/{{name}}"
    served = _Served(kind)
    whole = (
        put(one, served.put),
        patch(one, served.patch),
        read(one, served.show),
        delete(one, served.delete),
        read(f"{group}/providers/{kind.type}", served.list_all),
        read(f"{subscription}/providers/{kind.type}", served.list_all),
    )
    return whole + tuple(
        operation for part in kind.parts for operation in _ServedPart(kind, part).operations(one)
    )


class _Served:
    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    async def put(self, services: ArmServices, asked: Asked) -> ArmAnswer:
        def work(tx: Transaction) -> tuple[Json, bool]:
            id_ = _id(self._kind, asked)
            is_new = put_in(tx, self._kind, id_, asked.body or {})
            return self._shown(tx, id_), is_new

        shown, is_new = await services.engine.decide(work)
        return (created if is_new else updated)(shown, None, asked)

    async def patch(self, services: ArmServices, asked: Asked) -> ArmAnswer:
        """Tags, as everywhere in Microsoft.Network."""
        tags = new_tags(Fields(asked.body or {}))

        def work(tx: Transaction) -> Json:
            id_ = _id(self._kind, asked)
            document = decoded(self._found(tx, id_))
            put_in(tx, self._kind, id_, {**document, "tags": tags})
            return self._shown(tx, id_)

        return ok(await services.engine.decide(work))

    async def show(self, services: ArmServices, asked: Asked) -> ArmAnswer:
        def question(snapshot: Snapshot) -> Json:
            return show(snapshot, self._kind, self._found(snapshot, _id(self._kind, asked)))

        return ok(await services.engine.ask(question))

    async def delete(self, services: ArmServices, asked: Asked) -> ArmAnswer:
        def work(tx: Transaction) -> bool:
            id_ = _id(self._kind, asked)
            found = look_up(tx, self._kind, id_)
            if found is None:
                return False
            if declared(tx, id_) is None:
                raise interface_in_use(found.path)
            tx.withdraw(found.path)
            return True

        return ArmAnswer() if await services.engine.decide(work) else no_content()

    async def list_all(self, services: ArmServices, asked: Asked) -> ArmAnswer:
        """Of a group, or of the subscription."""

        def question(snapshot: Snapshot) -> Json:
            subscription, group = asked.path["subscription"], asked.path.get("group")
            if group is not None:
                groups.find(snapshot, subscription, group)
            found = every(snapshot, self._kind, subscription, group)
            return page(
                found, asked, lambda each: each.path.casefold(), show=shower(snapshot, self._kind)
            )

        return ok(await services.engine.ask(question))

    def _found(self, snapshot: Snapshot, id_: ResourceId) -> Declaration:
        groups.find(snapshot, id_.subscription, id_.group)
        found = look_up(snapshot, self._kind, id_)
        if found is None:
            raise resource_not_found(id_.path)
        return found

    def _shown(self, tx: Transaction, id_: ResourceId) -> Json:
        found = declared(tx, id_)
        assert found is not None  # noqa: S101  # it has just been declared
        return show(tx, self._kind, found)


class _ServedPart:
    def __init__(self, kind: Kind, part: str) -> None:
        self._kind = kind
        self._part = part

    def operations(self, whole: str) -> tuple[Operation, ...]:
        one = f"{whole}/{self._part}/{{part}}"
        return (
            put(one, self.put),
            read(one, self.show),
            delete(one, self.delete),
            read(f"{whole}/{self._part}", self.list_all),
        )

    async def put(self, services: ArmServices, asked: Asked) -> ArmAnswer:
        name = asked.path["part"]

        def work(tx: Transaction) -> tuple[Json, bool]:
            id_ = self._id(tx, asked)
            is_new = put_part_in(tx, self._kind, id_, (self._part, name), asked.body or {})
            return self._one(tx, id_, name), is_new

        shown, is_new = await services.engine.decide(work)
        return (created if is_new else updated)(shown, None, asked)

    async def show(self, services: ArmServices, asked: Asked) -> ArmAnswer:
        def question(snapshot: Snapshot) -> Json:
            return self._one(snapshot, self._id(snapshot, asked), asked.path["part"])

        return ok(await services.engine.ask(question))

    async def list_all(self, services: ArmServices, asked: Asked) -> ArmAnswer:
        def question(snapshot: Snapshot) -> list[Json]:
            return self._all(snapshot, self._id(snapshot, asked))

        found = await services.engine.ask(question)
        return ok(page(found, asked, lambda each: str(each["name"]).casefold()))

    async def delete(self, services: ArmServices, asked: Asked) -> ArmAnswer:
        def work(tx: Transaction) -> bool:
            id_ = self._id(tx, asked)
            if look_up(tx, self._kind, id_) is None:
                return False
            document, parts = parts_of(tx, self._kind, id_, self._part)
            left = [each for each in parts if not same(each["name"], asked.path["part"])]
            document["properties"][self._part] = left
            put_in(tx, self._kind, id_, document)
            return len(left) < len(parts)

        return ArmAnswer() if await services.engine.decide(work) else no_content()

    def _id(self, snapshot: Snapshot, asked: Asked) -> ResourceId:
        groups.find(snapshot, asked.path["subscription"], asked.path["group"])
        return _id(self._kind, asked)

    def _all(self, snapshot: Snapshot, id_: ResourceId) -> list[Json]:
        declaration = look_up(snapshot, self._kind, id_)
        if declaration is None:
            raise resource_not_found(id_.path)
        parts: list[Json] = show(snapshot, self._kind, declaration)["properties"][self._part]
        return parts

    def _one(self, snapshot: Snapshot, id_: ResourceId, name: str) -> Json:
        for each in self._all(snapshot, id_):
            if same(each["name"], name):
                return each
        raise resource_not_found(f"{id_.path}/{self._part}/{name}")


def _id(kind: Kind, asked: Asked) -> ResourceId:
    return asked.id_of(kind.type, asked.path["name"])
