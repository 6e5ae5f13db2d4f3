"""Every action that has a form, in one table: its title, its fields, and what it calls."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from forewarned.console.actions import Actions, Caused, change_set, delete, operate
from forewarned.console.forms import FieldError, Form
from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Actor, EventSource, EventType
from forewarned.security.identities import Role
from forewarned.service.azure.actions import Action
from forewarned.service.azure.models.set_changes import ScaleSetChange
from forewarned.service.azure.resource_ids import InvalidResourceIdError, ResourceId
from forewarned.service.events.schedule import EventOrder, WorkOrder, usual_source

MOST_INSTANCES: Final = 1000

Perform = Callable[[Actions, Form, Actor], Awaitable[Caused]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionForm:
    key: str
    """Its last part of the address."""
    title: str
    lead: str
    """What will happen and when, before anything is filled in."""
    verb: str
    """What its button says."""
    fields: tuple[str, ...]
    perform: Perform
    needs: Role = Role.MAINTAINER
    """As the same thing needs at the ARM listener."""
    is_grave: bool = False
    """Whether it can only be sent after its preview was shown: there is no way back."""


async def _schedule(actions: Actions, form: Form, by: Actor) -> Caused:
    type_ = form.choice("type", EventType)
    order = EventOrder(
        type=type_,
        resources=tuple(map(ResourceName, form.names())),
        source=form.optional_choice("source", EventSource) or usual_source(type_),
        notice=form.span("notice"),
        short_notice="short_notice" in form,
        duration=form.span("duration"),
        description=form.text("description") or None,
    )
    return await actions.scheduler.schedule(order, by=by)


def _operate(action: Action) -> Perform:
    async def perform(actions: Actions, form: Form, by: Actor) -> Caused:
        names = form.names()
        return await actions.decide(
            lambda tx, context: operate(tx, names, action, context=context), by=by
        )

    return perform


async def _delete(actions: Actions, form: Form, by: Actor) -> Caused:
    names = form.names()
    return await actions.decide(lambda tx, context: delete(tx, names, context=context), by=by)


async def _maintain_set(actions: Actions, form: Form, by: Actor) -> Caused:
    scope_id = ScopeId(form.required("scope", "a set"))
    return await actions.scheduler.maintain_set(scope_id, _work(form), by=by)


async def _maintain_host(actions: Actions, form: Form, by: Actor) -> Caused:
    return await actions.scheduler.maintain_host(_host(form), _work(form), by=by)


async def _fail_host(actions: Actions, form: Form, by: Actor) -> Caused:
    return await actions.scheduler.fail_host(_host(form), by=by)


async def _predict_failure(actions: Actions, form: Form, by: Actor) -> Caused:
    return await actions.scheduler.predict_failure(_host(form), by=by)


async def _scale(actions: Actions, form: Form, by: Actor) -> Caused:
    change = ScaleSetChange(capacity=form.whole("capacity", least=0, most=MOST_INSTANCES))
    id_ = read_set_id(form, "set")
    return await actions.decide(
        lambda tx, context: change_set(tx, id_, change, context=context), by=by
    )


def read_set_id(form: Form, name: str) -> ResourceId:
    try:
        return ResourceId.parse(form.required(name, "a scale set"))
    except InvalidResourceIdError as error:
        raise FieldError(str(error), field=name) from None


def _host(form: Form) -> HostName:
    return HostName(form.required("host", "a host"))


def _work(form: Form) -> WorkOrder:
    return WorkOrder(
        type=form.choice("type", EventType),
        notice=form.span("notice"),
        short_notice="short_notice" in form,
        duration=form.span("duration"),
        description=form.text("description") or None,
    )


_WORK: Final = ("work_type", "notice", "duration", "description", "short_notice")

ACTION_FORMS: Final[tuple[ActionForm, ...]] = (
    ActionForm(
        key="schedule",
        title="Schedule an event",
        lead="One event for each scope the VMs are in (for Terminate, one for each VM). VMs see it"
        " at once. It starts when one of them approves it, or at its NotBefore: after 15 minutes"
        " for Freeze and Reboot, 10 for Redeploy, 5 for Terminate (or the VM's termination delay,"
        " if it is longer), 30 seconds for Preempt, or the notice you give.",
        verb="Schedule",
        fields=("type", "vms", "notice", "duration", "description", "source", "short_notice"),
        perform=_schedule,
    ),
    ActionForm(
        key="restart",
        title="Restart VMs",
        lead="A Reboot for each VM, with the source User. It starts after 15 minutes, or as soon as"
        " a VM of its scope approves it.",
        verb="Restart",
        fields=("vms",),
        perform=_operate(Action.RESTART),
    ),
    ActionForm(
        key="redeploy",
        title="Redeploy VMs",
        lead="A Redeploy for each VM, with the source User. The VM moves to another host after 10"
        " minutes, or as soon as a VM of its scope approves the event.",
        verb="Redeploy",
        fields=("vms",),
        perform=_operate(Action.REDEPLOY),
    ),
    ActionForm(
        key="evict",
        title="Evict Spot VMs",
        lead="A Preempt for each Spot VM. After 30 seconds the VM is deallocated or deleted, as its"
        " eviction policy says.",
        verb="Evict",
        fields=("vms",),
        perform=_operate(Action.EVICT),
    ),
    ActionForm(
        key="delete",
        title="Delete VMs",
        lead="VMs whose model has the termination notification on get a Terminate event, and are"
        " deleted after their termination delay, or when the event is approved. All other VMs are"
        " deleted at once.",
        verb="Delete",
        fields=("vms",),
        perform=_delete,
        needs=Role.ADMIN,
        is_grave=True,
    ),
    ActionForm(
        key="scale",
        title="Scale a set",
        lead="New instances are created at once, from the set's latest model. If you lower the"
        " number, the newest are deleted, with a Terminate event if their model has the"
        " notification on.",
        verb="Scale",
        fields=("set", "capacity"),
        perform=_scale,
        needs=Role.ADMIN,
    ),
    ActionForm(
        key="maintain-set",
        title="Maintain a set",
        lead="Maintains every VM of the set, one update domain after the other. The event of the"
        " first update domain appears now, and each further event when the one before it is over.",
        verb="Maintain",
        fields=("scope", *_WORK),
        perform=_maintain_set,
    ),
    ActionForm(
        key="maintain-host",
        title="Maintain a host",
        lead="One event for each scope with VMs on the host. They start together: when all are"
        " approved, or at their NotBefore.",
        verb="Maintain",
        fields=("host", *_WORK),
        perform=_maintain_host,
    ),
    ActionForm(
        key="predict-failure",
        title="Predict a host's failure",
        lead="A Redeploy for each VM on the host, with days of notice.",
        verb="Predict",
        fields=("host",),
        perform=_predict_failure,
    ),
    ActionForm(
        key="fail-host",
        title="Fail a host",
        lead="The host fails now. Its VMs get events that have already started: by default a"
        " Redeploy, which moves them to another host.",
        verb="Fail the host",
        fields=("host",),
        perform=_fail_host,
        is_grave=True,
    ),
)
BY_KEY: Final = {each.key: each for each in ACTION_FORMS}


def role_for(path: Mapping[str, str]) -> Role:
    """The role for the form at an address; what is no form is not found anyway."""
    action = BY_KEY.get(path["action"])
    return Role.MAINTAINER if action is None else action.needs
