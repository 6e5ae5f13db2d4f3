"""`python -m notbefore` is `notbefore`."""

from notbefore.cli import main

main()
