"""The tree is the pipeline: imports point one way, from later layers to earlier ones."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "vgae"
LAYERS = [
    "visible",
    "words",
    "spelling",
    "errors",
    "version",
    "screen",
    "memory",
    "machine",
    "workers",
    "options",
    "graph",
    "io",
    "ops",
    "parallel",
    "model",
    "likelihood",
    "objective",
    "evaluation",
    "baselines",
    "train",
    "callbacks",
    "stack",
    "runs",
    "explore",
    "estimators",
    "search",
    "experiments",
    "report",
    "cli",
    "__main__",
]
MODULES = sorted(PACKAGE.rglob("*.py"))


def layer_of(module: str) -> str:
    return module.removeprefix("vgae.").split(".")[0]


def is_module(text: str) -> bool:
    """Whether a string names a module of the package, as import_module takes it."""
    first, *others = text.split(".")
    path = PACKAGE.joinpath(*others)
    return first == "vgae" and bool(others) and (path.with_suffix(".py").is_file() or path.is_dir())


def imported_modules(path: Path) -> set[str]:
    """Every vgae module a file imports, wherever the import stands, or names in order to import it later."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_module(node.value):
            found.add(node.value)  # by import_module, later
    return {name for name in found if name.startswith("vgae.")}


def test_every_layer_is_listed() -> None:
    found = {layer_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts)) for path in MODULES}
    assert found - {"__init__"} == set(LAYERS)


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.parent != PACKAGE or path.stem != "__init__"], ids=str
)
def test_imports_point_one_way(path: Path) -> None:
    own = layer_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
    for module in imported_modules(path):
        assert LAYERS.index(layer_of(module)) <= LAYERS.index(own), f"{path.name} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_no_import_hides_inside_a_function(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            hidden = [inner for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom)]
            assert not hidden, f"{path.name}: {node.name} imports inside its body"
