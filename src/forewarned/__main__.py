"""`python -m forewarned` is `forewarned`."""

from forewarned.cli import main

main()
