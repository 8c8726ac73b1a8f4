"""Rejection of creates while a definition is terminating.

Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go, forbidCreateAdmission.
"""

from __future__ import annotations

from tetrapod.generic.admission.interface import AdmissionChain, Attributes, forbidden


class TerminatingAdmission:
    """An `AdmissionChain` around that of the server. `terminating` follows the condition of the definition."""

    def __init__(self, chain: AdmissionChain) -> None:
        self._chain = chain
        self.terminating = False

    def handles(self, operation: str) -> bool:
        return (self.terminating and operation == "CREATE") or self._chain.handles(operation)

    async def admit(self, attributes: Attributes) -> None:
        await self._chain.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        if self.terminating and attributes.operation == "CREATE":
            raise forbidden(attributes, "create not allowed while custom resource definition is terminating")
        await self._chain.validate(attributes)
