"""`python -m stepcast_collect`."""

import sys

from stepcast_collect.cli import main

sys.exit(main())
