"""`python -m stepcast` is the command `stepcast`."""

import sys

from stepcast._program import main

sys.exit(main())
