"""An import-linter contract that forbids import cycles between modules, including imports for type checking only.

`make lint` checks it (pyproject.toml).
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output


class NoImportCycles(Contract):
    """A contract against import cycles between modules of any packages.

    import-linter's `acyclic_siblings` compares packages.
    """

    type_name = "no_import_cycles"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        cycle = _find_cycle({module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules})
        return ContractCheck(kept=not cycle, metadata={"cycle": cycle})

    def render_broken_contract(self, check: ContractCheck) -> None:
        output.print_error(" -> ".join(check.metadata["cycle"]))
        output.print(
            "A type that two modules need belongs in a third, below both; a Protocol says what is used of the other."
        )


def _find_cycle(imports: dict[str, set[str]]) -> list[str]:
    """Return the modules of one import cycle, with the first repeated at the end, or an empty list."""
    left = dict(imports)
    while ended := [module for module, needs in left.items() if not needs & left.keys()]:
        for module in ended:
            del left[module]
    way: list[str] = []
    here = min(left, default="")
    while left and here not in way:
        way.append(here)
        here = min(left[here] & left.keys())
    return [*way[way.index(here) :], here] if way else []
