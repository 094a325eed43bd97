"""`python -m rvq.cli` is `rvq`."""

import sys

from rvq.cli import main

if __name__ == "__main__":
    sys.exit(main())
