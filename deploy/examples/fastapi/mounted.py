"""An aggregated API inside a FastAPI application: /shop is FastAPI's, everything else is the Kubernetes API's."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, Field

from tetrapod.generic.aggregated import AggregatedServer, Cluster, Kind, PrinterColumn, Settings, serve_asgi


class Spec(BaseModel):
    customer: str = Field(min_length=1)
    amount: int = Field(default=1, ge=1)


class Order(BaseModel):
    """An order of a customer."""

    spec: Spec


ORDER = Kind(
    "shop.example.com/v1", "Order", Order, columns=[PrinterColumn("Customer", lambda obj: obj["spec"]["customer"])]
)


def application(server: AggregatedServer) -> FastAPI:
    app = FastAPI()

    @app.get("/shop")
    async def shop() -> dict[str, Any]:
        return {"open": True}

    app.mount("/", server.asgi)  # last, because it matches every path
    return app


if __name__ == "__main__":
    kubeconfig, data_dir, port = sys.argv[1:]
    hosts = ("localhost", "shop.default.svc")
    settings = Settings(
        Cluster.from_kubeconfig(kubeconfig),
        data_dir=Path(data_dir),
        bind_address="127.0.0.1",
        port=int(port),
        hosts=hosts,
        name="shop",
    )
    server = AggregatedServer([ORDER], settings)
    asyncio.run(serve_asgi(application(server), server))
