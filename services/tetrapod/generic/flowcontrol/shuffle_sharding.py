"""Shuffle sharding: the hash of a flow selects a hand (a small set) of queues from the deck (all queues).

Upstream: staging/src/k8s.io/apiserver/pkg/util/shufflesharding/dealer.go
"""

from __future__ import annotations

import hashlib


def deal(hash_value: int, deck_size: int, hand_size: int) -> tuple[int, ...]:
    """Return `hand_size` different numbers below `deck_size`, selected by a 64-bit hash.

    The same hash gives the same numbers in the same order. All hands are equally likely.
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
    """Return the 64-bit hash of a flow, which the name of its FlowSchema and its distinguisher identify."""
    digest = hashlib.sha256(f"{schema}\0{distinguisher}".encode()).digest()
    return int.from_bytes(digest[:8], "little")
