"""What clients ask of resources that are kept as declared: the same for each type of them."""

from forewarned.control.arm.answers import ArmAnswer, created, finished, no_content, ok, updated
from forewarned.control.arm.errors import bad_request, resource_not_found
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
from forewarned.control.arm.routes import GROUP, SUBSCRIPTION, Operation, delete, patch, put, read
from forewarned.service.azure.groups import declared
from forewarned.service.azure.models.documents import Fields, Json, decoded
from forewarned.service.azure.models.profiles import new_tags
from forewarned.service.azure.resource_ids import ResourceId, same
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Declaration


def operations_on(kind: Kind) -> tuple[Operation, ...]:
    """All that can be asked of resources of one type."""
    one = f"{GROUP}/providers/{kind.type}/{{name}}"
    served = _Served(kind)
    whole = (
        put(one, served.put),
        patch(one, served.patch),
        read(one, served.show),
        delete(one, served.delete),
        read(f"{GROUP}/providers/{kind.type}", served.list_all),
        read(f"{SUBSCRIPTION}/providers/{kind.type}", served.list_all),
    )
    return whole + tuple(
        operation for part in kind.parts for operation in _ServedPart(kind, part).operations(one)
    )


class _Served:
    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def put(self, tx: Transaction, asked: Asked) -> ArmAnswer:
        id_ = _id(self._kind, asked)
        is_new = put_in(tx, self._kind, id_, asked.body or {})
        return (created if is_new else updated)(self._shown(tx, id_), None, asked)

    def patch(self, tx: Transaction, asked: Asked) -> ArmAnswer:
        """Tags, as everywhere in Microsoft.Network."""
        tags = new_tags(Fields(asked.body or {}))
        id_ = _id(self._kind, asked)
        document = decoded(self._found(tx, asked))
        put_in(tx, self._kind, id_, {**document, "tags": tags})
        return ok(self._shown(tx, id_))

    def show(self, snapshot: Snapshot, asked: Asked) -> ArmAnswer:
        return ok(show(snapshot, self._kind, self._found(snapshot, asked)))

    def delete(self, tx: Transaction, asked: Asked) -> ArmAnswer:
        id_ = _id(self._kind, asked)
        found = look_up(tx, self._kind, id_)
        if found is None:
            return no_content()
        if declared(tx, id_) is None:
            raise bad_request(
                "NicInUse",
                f"The network interface '{found.path}' is the only one of its virtual machine:"
                " delete the virtual machine instead.",
            )
        tx.withdraw(found.path)
        return finished()

    def list_all(self, snapshot: Snapshot, asked: Asked) -> ArmAnswer:
        """Of a group, or of the subscription."""
        found = every(snapshot, self._kind, *groups.listed_in(snapshot, asked))
        show = shower(snapshot, self._kind)
        return ok(page(found, asked, lambda each: each.path.casefold(), show=show))

    def _found(self, snapshot: Snapshot, asked: Asked) -> Declaration:
        groups.find_asked(snapshot, asked)
        id_ = _id(self._kind, asked)
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

    def put(self, tx: Transaction, asked: Asked) -> ArmAnswer:
        id_, name = self._id(tx, asked), asked.path["part"]
        is_new = put_part_in(tx, self._kind, id_, (self._part, name), asked.body or {})
        return (created if is_new else updated)(self._one(tx, id_, name), None, asked)

    def show(self, snapshot: Snapshot, asked: Asked) -> ArmAnswer:
        return ok(self._one(snapshot, self._id(snapshot, asked), asked.path["part"]))

    def list_all(self, snapshot: Snapshot, asked: Asked) -> ArmAnswer:
        found = self._all(snapshot, self._id(snapshot, asked))
        return ok(page(found, asked, lambda each: str(each["name"]).casefold()))

    def delete(self, tx: Transaction, asked: Asked) -> ArmAnswer:
        id_ = self._id(tx, asked)
        if look_up(tx, self._kind, id_) is None:
            return no_content()
        document, parts = parts_of(tx, self._kind, id_, self._part)
        left = [each for each in parts if not same(each["name"], asked.path["part"])]
        document["properties"][self._part] = left
        put_in(tx, self._kind, id_, document)
        return finished() if len(left) < len(parts) else no_content()

    def _id(self, snapshot: Snapshot, asked: Asked) -> ResourceId:
        groups.find_asked(snapshot, asked)
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
