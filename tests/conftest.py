"""The same examples each time: what fails here fails for everybody. `make fuzz` looks for new ones."""

import os

from hypothesis import settings

settings.register_profile("steady", derandomize="FUZZ_EXAMPLES" not in os.environ, deadline=None)
settings.load_profile("steady")
