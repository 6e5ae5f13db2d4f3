"""The api-versions of the instance document, which tokens of identities go by as well.

Scheduled Events has a list of its own, `service.events.api_versions`. Several of its versions are
unknown to the rest of the metadata service, and the newest of the metadata service are unknown to
it.
"""

from typing import Final

METADATA_VERSIONS: Final = (
    "2017-03-01",
    "2017-04-02",
    "2017-08-01",
    "2017-10-01",
    "2017-12-01",
    "2018-02-01",
    "2018-04-02",
    "2018-10-01",
    "2019-02-01",
    "2019-03-11",
    "2019-04-30",
    "2019-06-01",
    "2019-06-04",
    "2019-08-01",
    "2019-08-15",
    "2019-11-01",
    "2020-06-01",
    "2020-07-15",
    "2020-09-01",
    "2020-10-01",
    "2020-12-01",
    "2021-01-01",
    "2021-02-01",
    "2021-03-01",
    "2021-05-01",
    "2021-08-01",
    "2021-10-01",
    "2021-11-01",
    "2021-11-15",
    "2021-12-13",
    "2023-07-01",
    "2023-11-15",
    "2024-03-15",
    "2024-07-17",
    "2025-04-07",
)
"""What `/metadata/versions` lists, oldest first."""

# Azure introduced the instance document one version after the metadata service itself.
INSTANCE_VERSIONS: Final = frozenset(METADATA_VERSIONS[1:])

NEWEST_METADATA_VERSIONS: Final = METADATA_VERSIONS[:-4:-1]
