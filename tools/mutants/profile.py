"""How hypothesis searches while mutants are tried, as a pytest plugin.

The same examples every time, more of them than usual, and no shrinking: that a test fails is all
that is asked. Edits by machine are so many that each gets fewer examples.
"""

from hypothesis import HealthCheck, Phase, settings

NAME = "mutants"
MACHINE = "mutants-by-machine"

for name, examples in ((NAME, 150), (MACHINE, 15)):
    settings.register_profile(
        name,
        max_examples=examples,
        stateful_step_count=40,
        phases=[Phase.explicit, Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
