"""`shuffled`: elements in an order that a sort takes longest for."""

from __future__ import annotations

import random


def shuffled(form: str, n: int) -> list[str]:
    """Return `n` texts, in which numbers replace `#`, in random order."""
    texts = [form.replace("#", str(i)) for i in range(n)]
    random.Random(n).shuffle(texts)
    return texts
