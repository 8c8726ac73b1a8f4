"""Requests of the users of a token file (`--token-auth-file`)."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TokenUsers:
    """The users of a server at `url`. The token of each user is the user's name, followed by `-token`."""

    url: str

    def call(
        self, user: str, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        """Send a request of a user, and return the status and the object in the response."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {user}-token", "content-type": content_type}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def ask(
        self, user: str, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, str]:
        """Send a request of a user, and return the status and the message of a rejection."""
        code, answer = self.call(user, method, path, body, content_type)
        return code, answer["message"] if code >= 400 else ""

    def create(self, path: str, body: Any) -> Any:
        """Create an object as the user admin, and return it."""
        code, answer = self.call("admin", "POST", path, body)
        assert code == 201, answer
        return answer
