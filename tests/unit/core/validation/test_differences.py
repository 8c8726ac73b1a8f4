"""Tests of values printed in rejections: Go structs with their fields in order, and apimachinery's types in their own
notation.
"""

from __future__ import annotations

from tetrapod.core.validation.differences import internal


def test_a_label_selector_stays_as_on_the_wire_in_the_order_of_its_struct() -> None:
    spec = {
        "selector": {
            "matchExpressions": [{"values": ["v"], "operator": "In", "key": "k"}],
            "matchLabels": {"b": "c", "a": "b"},
        }
    }
    shown = internal("PersistentVolumeClaimSpec", spec)["Selector"]
    assert list(shown) == ["matchLabels", "matchExpressions"]
    assert list(shown["matchLabels"]) == ["a", "b"]
    assert list(shown["matchExpressions"][0]) == ["key", "operator", "values"]


def test_metadata_of_a_claim_template_is_inlined() -> None:
    owner = {"uid": "u", "name": "n", "kind": "K", "apiVersion": "v1"}
    shown = internal("ClaimTemplate", {"metadata": {"ownerReferences": [owner], "name": "n"}, "spec": {}})
    assert list(shown) == ["name", "ownerReferences", "Spec"]
    assert list(shown["ownerReferences"][0]) == ["apiVersion", "kind", "name", "uid"]


def test_the_status_of_a_claim_has_the_names_of_go() -> None:
    status = {"conditions": [{"status": "True", "type": "Resizing"}], "modifyVolumeStatus": {"status": "Pending"}}
    shown = internal("PersistentVolumeClaim", {"status": status})["Status"]
    assert shown["Conditions"] == [
        {
            "Type": "Resizing",
            "Status": "True",
            "LastProbeTime": None,
            "LastTransitionTime": None,
            "Reason": "",
            "Message": "",
        }
    ]
    assert shown["ModifyVolumeStatus"] == {"TargetVolumeAttributesClassName": "", "Status": "Pending"}
