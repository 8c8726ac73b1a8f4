"""Server-side apply: the field manager merges the apply configuration and records who manages which field.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go, applyPatcher
"""

from __future__ import annotations

from tetrapod.generic.endpoints.decoding import ShapeError
from tetrapod.generic.endpoints.options import WriteOptions
from tetrapod.generic.endpoints.patch_types import PatchMechanism
from tetrapod.generic.endpoints.scope import Scope
from tetrapod.generic.endpoints.struct_conversion_errors import decoding_error
from tetrapod.generic.scheduling.offload import is_large
from tetrapod.machinery.copying import copy_large, copy_object
from tetrapod.machinery.error_limits import recorded
from tetrapod.machinery.freeing import free_large
from tetrapod.machinery.golang.formatting import json_kind
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.number_conversion import as_filled
from tetrapod.machinery.serializer import yaml
from tetrapod.machinery.serializer.errors import DecodeError
from tetrapod.machinery.status import StatusError, bad_request


class ApplyPatching(PatchMechanism):
    """Computes the new object of a server-side apply request: merges the apply configuration and tracks field managers.

    Args:
        scope: the endpoint.
        body: the apply configuration, as YAML or JSON. StatusError (400) is raised if it cannot be decoded to a map.
        options: the options of the request; `force` takes over fields of other managers.
        manager: the name of the field manager.
    """

    def __init__(self, scope: Scope, body: bytes, options: WriteOptions, manager: str) -> None:
        super().__init__(scope, options.field_validation, manager)
        self.force = options.force
        self._copy = copy_large if is_large(body) else copy_object
        self.config, self.duplicates = self._decoded(body)

    def _decoded(self, body: bytes) -> tuple[Object, list[str]]:
        """Return the apply configuration in a body ({} for an empty document), and the texts of its duplicate fields.

        Raises:
            StatusError: 400, the body cannot be decoded, or is not a map.
        """
        try:
            decoded = yaml.decode(body)
        except DecodeError as error:
            raise bad_request(f"error encoding patch: {error}") from None
        config = decoded.obj if decoded.obj is not None else {}
        if not isinstance(config, dict):
            text = f"json: cannot unmarshal {json_kind(config)} into Go value of type map[string]interface {{}}"
            raise bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {text}")
        return config, decoded.duplicates

    @property
    def document(self) -> Object:
        return self.config

    def create(self, name: str) -> Object:
        return self._apply(None)

    def revise(self, current: Object) -> Object:
        return self._apply(current)

    def _apply(self, current: Object | None) -> Object:
        field_manager = self.scope.field_manager
        if field_manager is None:
            raise bad_request(f"{self.scope.kind.kind} cannot be applied")
        config = self._copy(self.config)
        new = field_manager.apply(current, config, self.manager, force=self.force, finish=self._finish)
        discarded = [config]
        del config
        free_large(discarded)
        if self.duplicates:
            if self.validation == "Strict":
                text = yaml.strict_text(self.duplicates)
                raise bad_request(f"error strict decoding patch: error converting YAML to JSON: {text}")
            self.warnings = recorded(self.duplicates)[0] if self.validation == "Warn" else []
        return new

    def _finish(self, applied: Object, changed: bool) -> Object:
        self.unchanged = not changed
        if not changed:
            return self._copy(applied)
        decoder = self.scope.decoder
        new = self._copy(applied) if decoder.custom else as_filled(applied, decoder.schema)
        try:
            decoder.shape(new, keep_nulls=True)
        except ShapeError as error:
            text = str(error) if decoder.custom else decoding_error(as_filled(applied, decoder.schema), decoder.schema)
            raise self._inconvertible(text) from None
        return new

    def _inconvertible(self, reason: str) -> StatusError:
        kind, meta = self.scope.kind, self.config.get("metadata") or {}
        kind_text = f"{kind.group}/{kind.version}, Kind={kind.kind}"
        subject = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {kind_text}"
        text = f"unable to convert unstructured object to {kind_text}: {reason}"
        return bad_request(f"failed to convert new object ({subject}) to proper version: {text}")


class CborApplyPatching(ApplyPatching):
    """The patch mechanism of server-side apply with an apply configuration in CBOR. Duplicate fields are errors."""

    def _decoded(self, body: bytes) -> tuple[Object, list[str]]:
        from tetrapod.generic.endpoints.cbor_bodies import decode_configuration

        try:
            return decode_configuration(body), []
        except DecodeError as error:
            raise bad_request(f"error decoding patch: {error}") from None
