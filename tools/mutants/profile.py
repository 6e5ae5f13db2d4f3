"""How hypothesis searches while mutants are tried, as a pytest plugin.

The same examples every time, more of them than usual, and no shrinking: that a test fails is all
that is asked.
"""

from hypothesis import HealthCheck, Phase, settings

NAME = "mutants"

settings.register_profile(
    NAME,
    max_examples=150,
    stateful_step_count=40,
    phases=[Phase.explicit, Phase.generate],
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
