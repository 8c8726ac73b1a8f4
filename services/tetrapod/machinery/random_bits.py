"""Random numbers that need not be unpredictable, such as audit IDs and suffixes of names.

Reading random bytes from the kernel for each costs more than generating them.
"""

from __future__ import annotations

import os
import random
from typing import Final

_random: Final = random.Random()
if hasattr(os, "register_at_fork"):  # not on Windows
    # Otherwise the workers of a server would generate the same numbers.
    os.register_at_fork(after_in_child=_random.seed)

random_bits: Final = _random.getrandbits
"""A function that returns a random integer with the given number of bits."""
random_choices: Final = _random.choices
"""A function that returns a list of `k` random items of a sequence."""
