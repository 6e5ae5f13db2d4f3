"""Mutants of what is published: who it is for, where it goes, and how it is signed."""

from typing import Final

from tools.mutants.mutant import Mutant

_ADDRESSES: Final = "tests/targets/test_addresses.py"
_WEBHOOK: Final = "tests/publishing/targets/test_webhook.py"
_HANDSHAKE: Final = "tests/publishing/targets/test_handshake.py"
_TEMPLATE: Final = "tests/service/subscriptions/test_template.py"
_OUTBOX: Final = "tests/storage/test_contract_outbox.py"
_FAN_OUT: Final = "tests/storage/sqlite/test_fan_out.py"
_DELIVERIES: Final = "tests/storage/test_contract_subscriptions.py"
_KILLED: Final = "tests/publishing/test_publisher_killed.py"
_RESTS: Final = "tests/publishing/test_rests.py"
_PUBLISHER: Final = "tests/publishing/test_publisher.py"

PUBLISHING: Final = (
    Mutant(
        name="outbox-beside-transition",
        file="storage/relational/transaction.py",
        old="                *messages,\n",
        new="",
        breaks="I23: a transition is committed without its message",
        tests=(_OUTBOX,),
    ),
    Mutant(
        name="subscription-changed-unnoticed",
        file="storage/sqlite/group_commit.py",
        old="if any(transaction.has_subscribed for transaction in transactions):",
        new="if not self._subscriptions:",
        breaks="Decision 0048: a message is not written because no subscription was once for it",
        tests=(_FAN_OUT,),
    ),
    Mutant(
        name="failed-function-publishes",
        file="storage/sqlite/group_commit.py",
        old="            transaction.undo()\n",
        new="",
        breaks="I23: a message is sent of what has not happened",
        tests=(_FAN_OUT,),
    ),
    Mutant(
        name="past-the-unaddressed",
        file="storage/relational/publishing/outbox.py",
        old="if unaddressed is not None and (addressed is None or unaddressed < addressed):",
        new="if unaddressed is not None and addressed is None:",
        breaks="Decision 0048: a message overtakes those of its scope that have yet to be compared",
        tests=(_OUTBOX,),
    ),
    Mutant(
        name="taken-by-a-namesake",
        file="storage/relational/publishing/subscriptions.py",
        old="        outbox.remove_taker(self._writable, name)\n",
        new="",
        breaks="Decision 0048: a subscription gets messages of one that had its name before",
        tests=(_OUTBOX,),
    ),
    Mutant(
        name="scope-out-of-order-at-once",
        file="storage/relational/publishing/outbox.py",
        old=":first AND :until AND NOT {EARLIER}",
        new=":first AND :until",
        breaks="Decision 0048: a message is delivered while the one before it is under way",
        tests=(_FAN_OUT,),
    ),
    Mutant(
        name="overtaken-in-a-later-commit",
        file="storage/relational/publishing/outbox.py",
        old=":first AND :until AND NOT {EARLIER}",
        new=":first AND :until AND NOT {EARLIER.replace('<', '>= :first AND earlier.number <')}",
        breaks="Decision 0048: a message is delivered while one of an earlier commit is under way",
        tests=(_FAN_OUT,),
    ),
    Mutant(
        name="where-a-vm-was-before",
        file="storage/sqlite/group_commit.py",
        old="        if moves_vms:\n            self._places.forget()\n",
        new="",
        breaks="Decision 0048: a message says where its VM was before it was moved",
        tests=(_FAN_OUT,),
    ),
    Mutant(
        name="place-gone-with-its-vm",
        file="storage/relational/transaction.py",
        old="if difference.removed and places:",
        new="if not difference.removed and places:",
        breaks="Decision 0048: a message of a VM that is removed soon does not say where it was",
        tests=(_OUTBOX, _FAN_OUT),
    ),
    Mutant(
        name="given-up-unseen",
        file="publishing/retries.py",
        old="rest.number >= FAILURES_OF_DEAD",
        new="rest.number >= 1",
        breaks="Decision 0048: a server that was down gives up all messages at the first failure",
        tests=(_RESTS,),
    ),
    Mutant(
        name="scope-out-of-order",
        file="storage/relational/publishing/outbox.py",
        old="THEN NULL ELSE :now END)",
        new="THEN :now ELSE :now END)",
        breaks="Decision 0048: a message is delivered while the one before it is under way",
        tests=(_DELIVERIES,),
    ),
    Mutant(
        name="claim-of-another",
        file="storage/relational/publishing/subscriptions.py",
        old="{_DELIVERIES} WHERE claimed_by = ?",
        new="{_DELIVERIES} WHERE claimed_by >= ?",
        breaks="Decision 0048: an attempt counts although another node has taken the message over",
        tests=(_DELIVERIES, _KILLED),
    ),
    Mutant(
        name="claims-kept-at-start",
        file="publishing/turn.py",
        old="if standing.resumes:",
        new="if not standing.resumes:",
        breaks="I23: what a killed node was delivering waits until its claims are over",
        tests=(_KILLED,),
    ),
    Mutant(
        name="places-for-the-idle",
        file="publishing/turn.py",
        old="[name for name in active if name in due]",
        new="active",
        breaks="Decision 0048: among many subscriptions, one with a message waits for minutes",
        tests=(_PUBLISHER,),
    ),
    Mutant(
        name="day-spent-in-a-pause",
        file="service/subscriptions/subscriptions.py",
        old="                tx.requeue(name)",
        new="                pass",
        breaks="Decision 0048: what was kept during a long pause is given up at the first failure",
        tests=(_PUBLISHER,),
    ),
    Mutant(
        name="mapped-address-unseen",
        file="targets/addresses.py",
        old="if address.ipv4_mapped is not None:\n        return address.ipv4_mapped",
        new="if address.ipv4_mapped is not None:\n        return address",
        breaks="S1: ::ffff:169.254.169.254 is judged by its IPv6 form",
        tests=(_ADDRESSES,),
    ),
    Mutant(
        name="metadata-address-private",
        file="targets/addresses.py",
        old="if any(_is_in(each, _NEVER)",
        new="if reach is not Reach.PRIVATE and any(_is_in(each, _NEVER)",
        breaks="S1: a setting for private networks opens the metadata service, too",
        tests=(_ADDRESSES,),
    ),
    Mutant(
        name="name-resolved-again",
        file="targets/http.py",
        old="url = url.copy_with(host=address)",
        new="pass",
        breaks="S1: the client resolves the name itself, to whatever it means by then",
        tests=(_WEBHOOK,),
    ),
    Mutant(
        name="address-in-certificate",
        file="targets/http.py",
        old='extensions["sni_hostname"] = url.host',
        new="pass",
        breaks="S16: the certificate is verified for the address, and not for the name",
        tests=(_WEBHOOK,),
    ),
    Mutant(
        name="old-secret-forgotten",
        file="targets/signatures.py",
        old="for key in keys]",
        new="for key in keys[:1]]",
        breaks="Standard Webhooks: a receiver with the old secret refuses messages",
        tests=(_WEBHOOK,),
    ),
    Mutant(
        name="asked-for-time-in-vain",
        file="publishing/targets/handshake.py",
        old="if self._answers == before:",
        new="if True:",
        breaks="Event Grid: a webhook that asks for time is asked again by each message that waits",
        tests=(_HANDSHAKE,),
    ),
    Mutant(
        name="event-before-handshake",
        file="publishing/targets/webhook.py",
        old="if failure is not None:",
        new="if failure is None:",
        breaks="Event Grid: a webhook that did not confirm is sent events",
        tests=(_HANDSHAKE,),
    ),
    Mutant(
        name="template-calls",
        file="service/subscriptions/template.py",
        old="_ALLOWED: Final = (",
        new="_ALLOWED: Final = (\n    nodes.Call,",
        breaks="S15: a template may call what it can reach",
        tests=(_TEMPLATE,),
    ),
    Mutant(
        name="policy-not-asked",
        file="service/subscriptions/model.py",
        old="(message.publishing.enabled or every_scope)",
        new="True",
        breaks="Event Grid: scopes are published whose policy does not ask for it",
        tests=("tests/service/subscriptions/test_model.py",),
    ),
    Mutant(
        name="sent-unseen",
        file="service/subscriptions/model.py",
        old="self.filter == _TAKES_ALL and",
        new="",
        breaks="Decision 0048: a message is written for a filter that does not take it",
        tests=(_FAN_OUT,),
    ),
)
