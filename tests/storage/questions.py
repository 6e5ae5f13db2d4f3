"""Questions that find a few rows, in however large a store."""

from forewarned.core.ids import HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import ScopeKind
from forewarned.service.listings import EventFilter, HistoryFilter
from forewarned.service.ports import Snapshot
from tests.builders import NOON, A, event_id

SCOPE1 = ScopeId("scope1")


def ask_for_a_few_rows(snapshot: Snapshot) -> None:
    snapshot.load(SCOPE1)
    snapshot.binding("vm1")
    snapshot.event(A)
    snapshot.closed(SCOPE1, [A, event_id(2)])
    list(snapshot.pages())
    snapshot.started()
    snapshot.scopes_of_work(MaintenanceId("work"))
    snapshot.scopes_on(HostName("host1"))
    snapshot.next_wake()
    snapshot.events(EventFilter(scope_id=SCOPE1))
    snapshot.history(HistoryFilter(scope_id=SCOPE1))
    snapshot.history(HistoryFilter(event_id=A))
    snapshot.history(HistoryFilter(resource=ResourceName("vm1")))
    snapshot.history(HistoryFilter(since=NOON, until=NOON))
    snapshot.events(EventFilter(resource=ResourceName("vm1")))
    snapshot.events(EventFilter(maintenance=MaintenanceId("work")))
    snapshot.vms_like("vm1", limit=9)
    snapshot.scopes_like("scope", kinds=frozenset(ScopeKind), limit=9)
    snapshot.scope_listing("vm1", offset=0, limit=9)
    snapshot.affected_hosts()
    snapshot.host_summaries([HostName("host1")])
    snapshot.holder("10.0.0.1")
    snapshot.scope_ids("scope")
    snapshot.declaration("/subscriptions/sub")
    list(snapshot.declarations("/subscriptions/sub"))
    snapshot.operation("op1")
