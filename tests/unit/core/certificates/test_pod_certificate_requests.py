"""The limits of PodCertificateRequests that are too large for a recording."""

from __future__ import annotations

import pytest

from tetrapod.core.certificates.pod_certificate_requests.validation import validate


@pytest.mark.parametrize(("length", "errors"), [(256 * 1024 - 5, 0), (256 * 1024 - 4, 1)])
def test_annotations_of_users_may_have_256_kib(length: int, errors: int) -> None:
    spec = {"unverifiedUserAnnotations": {"a.b/c": "x" * length}}
    found = [error for error in validate({"spec": spec}) if error.field == "spec.unverifiedUserAnnotations"]
    assert len(found) == errors
    assert all(error.body() == "Too long: may not be more than 262144 bytes" for error in found)
