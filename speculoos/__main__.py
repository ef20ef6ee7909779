"""``python -m speculoos``: the command."""

import sys

from speculoos.cli import main

if __name__ == "__main__":
    sys.exit(main())
