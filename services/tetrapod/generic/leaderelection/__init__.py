"""Leader election by a Lease: of the replicas of a service one runs the controllers (upstream: client-go/tools/leaderelection)."""

from tetrapod.generic.leaderelection.config import ElectionConfig
from tetrapod.generic.leaderelection.elector import Elector
from tetrapod.generic.leaderelection.leadership import ALONE, Leadership, Runs, lead
from tetrapod.generic.leaderelection.lock import LeaseLock

__all__ = ["ALONE", "ElectionConfig", "Elector", "Leadership", "LeaseLock", "Runs", "lead"]
