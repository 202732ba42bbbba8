"""Lets this room's tests import its builders of outcomes."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
