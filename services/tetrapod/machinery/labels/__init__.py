"""Label selectors in text and object form, matching, and validation of labels.

Lists and watches parse the text form once and match every object with it; controllers and admission use the object
form.
"""

from tetrapod.machinery.labels.label_selectors import OPERATORS, format_label_selector, from_label_selector, from_set
from tetrapod.machinery.labels.parser import parse
from tetrapod.machinery.labels.selectors import Requirement, Selector, requirement
from tetrapod.machinery.labels.validation import (
    validate_label_name,
    validate_label_selector,
    validate_label_selector_requirement,
    validate_labels,
)

__all__ = [
    "OPERATORS",
    "Requirement",
    "Selector",
    "format_label_selector",
    "from_label_selector",
    "from_set",
    "parse",
    "requirement",
    "validate_label_name",
    "validate_label_selector",
    "validate_label_selector_requirement",
    "validate_labels",
]
