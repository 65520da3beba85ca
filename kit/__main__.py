"""`python -m kit`: the kit's verbs for a terminal. See kit/command_line.py."""

import sys

from kit.command_line import main

sys.exit(main())
