"""Templates of subscribers: what they can say, and that they reach nothing else and end."""

import threading

import pytest

from forewarned.service.subscriptions.content import samples
from forewarned.service.subscriptions.errors import BadTemplateError
from forewarned.service.subscriptions.model import PublishedStatus
from forewarned.service.subscriptions.template import (
    LONGEST_TEMPLATE,
    LONGEST_TEXT,
    TextTemplate,
)
from tests.builders import an_event
from tests.service.subscriptions.messages import a_message

ESCAPES = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__'] }}",
    "{{ vms['__class__'] }}",
    "{{ event.items }}",
    "{{ event.get('type') }}",
    "{{ vms.append('x') }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ lipsum.__globals__ }}",
    "{{ config }}",
    "{{ vms | attr('__class__') }}",
    "{{ vms | map(attribute='__class__') | join }}",
    "{{ vms | sort(attribute='__class__') | join }}",
    "{{ '{0.__class__}'.format(vms) }}",
    "{{ '%s' | format(vms) }}",
    "{% for vm in vms %}{{ loop.__class__ }}{% endfor %}",
    "{% for vm in vms %}{{ loop._iterable }}{% endfor %}",
    "{% for vm in vms recursive %}{{ loop(vms) }}{% endfor %}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{% extends 'base' %}",
    "{% macro f() %}{{ f() }}{% endmacro %}",
    "{% set x = 1 %}",
    "{% with x = 1 %}{% endwith %}",
]
ENDLESS = [
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{{ 'x' * 1000000000 }}",
    "{{ 2 ** 2 ** 40 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ actor | center(1000000000) }}",
    "{{ 1 | round(3000000, 'floor') }}",
    "{{ 1 | round(-3000000, 'ceil') }}",
    "{{ vms | length | round(3000000) }}",
    "{{ 1e400 | round }}",
    "{{ '" + "f" * 8000 + "' | int(base=16) }}",
    "{{ '" + "9" * 200 + "' | float }}",
    "{{ " + "9" * 5000 + " }}",
    "{{ (0x" + "f" * 8000 + " + vms | length) // 0xfff }}",
    "{{ 18446744073709551616 }}",
    "{{ status | trim('" + "".join(map(chr, range(0x100, 0x200))) + "') }}",
    "{{ vms | sort(attribute='" + "0," * 4000 + "0') | join }}",
    "{{ vms | unique(attribute='" + "0." * 4000 + "0') | join }}",
    "{% for a in [actor] %}{% for b in [" + "~".join("a" * 4000) + "] %}"
    "{{ (" + "~".join("b" * 3000) + ") | length }}{% endfor %}{% endfor %}",
    "{% for a in ['"
    + "x" * 4000
    + "'] %}{{ ("
    + "+".join("a" * 4000)
    + ") | length }}{% endfor %}",
    "{% for a in ['"
    + "x" * 4000
    + "'] %}{{ ["
    + ",".join("a" * 4000)
    + "] | length }}{% endfor %}",
    "{% for a in [[" + "actor," * 800 + "]] %}{% for b in [[" + ",".join("a" * 900) + "]] %}"
    "{{ [" + ",".join("b" * 900) + "] | string | length }}{% endfor %}{% endfor %}",
    "{{ vms | join(actor" + " | replace('', 'xxxxxxxxxxxxxxxx')" * 8 + ") }}",
    "{% for a in vms %}{% for b in vms %}{% for c in vms %}{% endfor %}{% endfor %}{% endfor %}",
    "{{ " + "(" * 400 + "1" + ")" * 400 + " }}",
    "{{ " + "not " * 4000 + "1 }}",
    "x" * (LONGEST_TEMPLATE + 1),
]


@pytest.mark.parametrize("text", ESCAPES)
def test_a_template_that_tries_to_escape_is_refused(text: str) -> None:
    with pytest.raises(BadTemplateError):
        TextTemplate(text)


@pytest.mark.parametrize("text", ENDLESS, ids=range(len(ENDLESS)))
def test_a_template_that_would_take_all_time_or_memory_is_refused(text: str) -> None:
    with pytest.raises(BadTemplateError):
        TextTemplate(text)


@pytest.mark.parametrize(
    "text", ["{{ status | truncate(-5) }}", "{{ 1e400 | int }}", r"{{ '\ud800' }}"]
)
def test_whatever_a_template_fails_with_it_is_refused(text: str) -> None:
    with pytest.raises(BadTemplateError, match=r"line 1|surrogates"):
        TextTemplate(text)


def test_a_text_that_grows_with_the_message_ends_at_its_limit() -> None:
    template = TextTemplate("{{ event.description | replace('x', 'xxxxxxxxxxxxxxxx') }}")
    message = a_message(event=an_event(description="x" * (LONGEST_TEXT // 2)))

    with pytest.raises(BadTemplateError, match="more than 65536 characters"):
        template.render(message)


def test_loops_that_do_too_much_work_end() -> None:
    """Even where they write nothing."""
    template = TextTemplate(
        "{% for a in event.description %}{% for b in event.description %}{% endfor %}{% endfor %}"
    )
    message = a_message(event=an_event(description="x" * 10_000))

    with pytest.raises(BadTemplateError, match=r"line 1: .* its loops run too long"):
        template.render(message)


@pytest.mark.parametrize(
    "step",
    [
        "{% if 'y' in event.description %}{% endif %}",
        "{% if event.description < event.description[1:] %}{% endif %}",
        "{% if event.description is in(event.description) %}{% endif %}",
        "{% if event.description[1:] %}{% endif %}",
        "{{ event.description | trim | length }}",
        "{{ (event.description ~ actor) | first }}",
        "{{ (event.description + actor) | first }}",
    ],
)
def test_what_a_loop_does_with_long_texts_is_work(step: str) -> None:
    """S15: however little it writes."""
    template = TextTemplate(f"{{% for a in event.description %}}{step}{{% endfor %}}")
    message = a_message(event=an_event(description="x" * (LONGEST_TEXT // 2)))

    with pytest.raises(BadTemplateError, match="it does too much work"):
        template.render(message)


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in event.resources %}{% if a in vms %}{{ a }},{% endif %}{% endfor %}",
        "{% for a in vms %}{{ vms | length }}{{ vms | first }}{% endfor %}",
        "{% for a in vms | sort + ['x'] %}{{ a ~ '/' ~ loop.length }}{% endfor %}",
        "{% for a, b in [['VMs', vms], ['Cause', cause]] %}{{ a }}: {{ b | string }}{% endfor %}",
    ],
)
def test_what_a_template_says_of_a_thousand_vms_is_not_too_much_work(text: str) -> None:
    names = [f"vm-{at:04}" for at in range(1000)]
    message = a_message(event=an_event(resources=names), vms=names)

    assert "vm-0000" in TextTemplate(text).render(message)


def test_filters_with_limits_of_their_own_are_those_of_jinja2() -> None:
    template = TextTemplate(
        "{{ 42.55 | round }} {{ 42.55 | round(1, 'floor') }} {{ 1250 | round(-2, 'ceil') }}"
        " {{ '0x1f' | int(base=16) }} {{ '4.7' | int }} {{ 'x' | int(7) }} {{ '1.5' | float }}"
        " {{ '--x--' | trim('-') }} {{ ['b', 'A', 'a'] | sort | join }}"
        " {{ ['b', 'A', 'a'] | sort(true, true) | join }} {{ ['b', 'B', 'a'] | unique | join }}"
        " {{ ['b', 'B'] | unique(case_sensitive=true) | length }}"
    )

    made = template.render(a_message())

    assert made == "43.0 42.5 1300.0 31 4 7 1.5 x Aab baA ba 2"


def test_every_vm_of_a_large_scope_has_a_place_in_a_text() -> None:
    template = TextTemplate(
        "{% for vm in vms %}{{ loop.index }}/{{ loop.length }} {{ vm }}\n{% endfor %}"
    )

    made = template.render(a_message(vms=[f"vm-{at}" for at in range(1000)]))

    assert made.splitlines()[-1] == "1000/1000 vm-999"


def test_a_template_has_the_fields_of_the_message() -> None:
    template = TextTemplate(
        "{{ status }} {{ event.type | upper }}:"
        "{% for vm in vms %} {{ loop.index }}.{{ vm }}{% if not loop.last %},{% endif %}"
        "{% endfor %}{{ ' by ' ~ event.approval.by if event.approval }}\n"
    )

    made = [template.render(message) for message in samples()]

    assert made[0] == "Scheduled REBOOT: 1.web_0, 2.web_1\n"
    assert made[2] == "Started REBOOT: 1.web_0, 2.web_1 by web_0\n"


def test_what_an_event_says_is_no_part_of_the_template() -> None:
    message = a_message(event=an_event(description='"{{ 1 + 1 }}" <b>\n'))

    assert TextTemplate("{{ event.description }}").render(message) == '"{{ 1 + 1 }}" <b>\n'
    assert TextTemplate("{{ event.description | tojson }}").render(message) == (
        r'"\"{{ 1 + 1 }}\" <b>\n"'
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("one\n{{ two", "line 2: unexpected end of template"),
        ("\n\n{{ evnt.type }}", "line 3: there is no 'evnt': use one of status, at, scope,"),
        ("\n{{ event.typ }}", "line 2: for an event that is Scheduled: 'dict object' has no"),
        ("{{ vms | random }}", "line 1: there is no filter 'random': use one of capitalize,"),
        (
            "{{ event.not_before | length }}\n{{ event.not_before + 'x' }}",
            "line 1: for an event that is Approved|line 1: for an event that is Started",
        ),
        ("{% set x = 1 %}", r"line 1: {% set %} is not allowed"),
        ("{{ actor.upper() }}", "line 1: calls are not allowed"),
        ("{% autoescape true %}x{% endautoescape %}", "^{% autoescape %} is not allowed"),
        ("{{ {'a': 1} }}", "line 1: a dictionary in braces is not allowed"),
        ("{{ +1 }}", r"line 1: a unary \+ is not allowed"),
    ],
)
def test_a_mistake_is_named_with_its_line_before_any_message_is_sent(text: str, why: str) -> None:
    with pytest.raises(BadTemplateError, match=why.replace("(", r"\(")):
        TextTemplate(text)


def test_threads_may_share_a_template() -> None:
    template = TextTemplate("{{ status }}{% for vm in vms %}{{ vm }}{% endfor %}")
    made: list[str] = []
    message = a_message(PublishedStatus.CANCELED)
    threads = [
        threading.Thread(target=lambda: made.append(template.render(message))) for _ in range(4)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert made == [template.render(message)] * 4
