"""`python -m library`: serve until SIGTERM."""

from library.resources import KINDS
from tetrapod.generic.aggregated import run

run(KINDS, name="library")
