"""Counters of the uses of service account tokens (upstream: pkg/serviceaccount/metrics.go)."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.metrics.collectors import Counter

LEGACY: Final = Counter("serviceaccount_legacy_tokens_total", "Cumulative legacy service account tokens used")
STALE: Final = Counter("serviceaccount_stale_tokens_total", "Cumulative stale projected service account tokens used")
VALID: Final = Counter("serviceaccount_valid_tokens_total", "Cumulative valid projected service account tokens used")
MANUAL: Final = Counter(
    "serviceaccount_legacy_manual_token_uses_total", "Cumulative manually created legacy tokens used"
)
AUTOMATIC: Final = Counter(
    "serviceaccount_legacy_auto_token_uses_total", "Cumulative auto-generated legacy tokens used"
)
INVALIDATED: Final = Counter(
    "serviceaccount_invalid_legacy_auto_token_uses_total", "Cumulative invalid auto-generated legacy tokens used"
)
