"""The command `forebay` of the wheel, and what Python sees of the package."""

import inspect
import subprocess
import sys
from importlib.metadata import files, version
from pathlib import Path

import forebay


def test_the_command_is_on_the_path_and_has_the_same_version() -> None:
    command = Path(sys.executable).parent / "forebay"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split()[:2] == ["forebay", forebay.__version__] and version("forebay") == forebay.__version__


def test_the_package_is_the_installed_one_and_typed() -> None:
    names = {str(path) for path in files("forebay") or []}
    assert {"forebay/py.typed", "forebay/_forebay.pyi", "forebay/_forebay.abi3.so"} <= names
    assert Path(forebay.__file__).is_relative_to(sys.prefix)


def test_everything_that_users_see_is_documented() -> None:
    for name in forebay.__all__:
        thing = getattr(forebay, name)
        assert inspect.getdoc(thing), name
        for member, value in vars(thing).items() if inspect.isclass(thing) else ():
            if not member.startswith("_") and callable(value):
                assert inspect.getdoc(value), f"{name}.{member}"


def test_the_stubs_name_what_the_native_half_has() -> None:
    import ast

    stub = ast.parse((Path(forebay.__file__).parent / "_forebay.pyi").read_text())
    from forebay import _forebay

    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    native = {name: thing for name, thing in vars(_forebay).items() if inspect.isclass(thing)}
    assert set(classes) == set(native)
    for name, node in classes.items():
        stubbed = {item.name for item in node.body if isinstance(item, ast.FunctionDef)} - {"__new__"}
        own = {m for m in vars(native[name]) if not m.startswith("__") or m in ("__len__", "__dlpack__", "__dlpack_device__")}
        assert stubbed == own, name


