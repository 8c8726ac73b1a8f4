"""Shuffle sharding: a flow's hash selects a hand of queues.

Upstream: staging/src/k8s.io/apiserver/pkg/util/shufflesharding/dealer.go
"""

from __future__ import annotations

import hashlib


def deal(hash_value: int, deck_size: int, hand_size: int) -> tuple[int, ...]:
    """Return `hand_size` different cards out of `deck_size`, selected by a 64-bit hash.

    All hands are equally likely.
    """
    remainders: list[int] = []
    hand: list[int] = []
    for i in range(hand_size):
        hash_value, card = divmod(hash_value, deck_size - i)
        remainders.append(card)
        for j in range(i, 0, -1):
            if card >= remainders[j - 1]:
                card += 1
        hand.append(card)
    return tuple(hand)


def flow_hash(schema: str, distinguisher: str) -> int:
    """Return the hash of a flow: of its FlowSchema's name and its distinguisher."""
    digest = hashlib.sha256(f"{schema}\0{distinguisher}".encode()).digest()
    return int.from_bytes(digest[:8], "little")
