"""`python -m everforge` is `everforge`."""

from everforge.cli import main

main()
