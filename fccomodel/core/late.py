"""Parts of torch that no solve touches, read when they are first touched: a third of what its import takes.

``import torch`` reads some of its modules only to bind their names: the exporter, and the kernels of tensors without data that
compilers work with. In the process of a command (:func:`install`, never in a program that imports fccomodel) such a module stands
empty under its name; the first touch of any of them, by whomever, reads them all, in torch's order, into the same objects. What
registers itself without being touched must be there before code that may count on it: :func:`whole`, which the user's code,
tables of torch's operations and torch's compilers are preceded by. A torch that this was not checked with is read whole.

By Python's own imports: their locks keep threads from what is half read. ``importlib.util.LazyLoader`` does not do: any look
reads a module, ``hasattr(module, "__file__")`` of inspect too, and its submodules are read twice.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

#: In the order of torch's import, which needs nothing of them in the versions that were checked but what :func:`_instead` does.
MODULES = ("torch.export", "torch.distributed._meta_registrations", "torch._meta_registrations")
VERSIONS = ("2.13",)
#: What works with tensors without data: all is read before these are.
COMPILERS = ("torch._dynamo", "torch._inductor", "torch.onnx")
#: What is told of a module that is not read yet; Python's imports set it.
TOLD = {"__name__", "__spec__", "__loader__", "__package__", "__file__", "__path__", "__cached__", "__class__"}
#: What no module has before something is warned of in it.
ABSENT = "__warningregistry__"

_STARTING = threading.Lock()
_waiting: dict[str, _Late] = {}
_started: dict[str, int] = {}
_reading = threading.local()


class _Late(ModuleType):
    """A module that is read when it is touched."""

    def __getattribute__(self, name: str) -> Any:
        if name not in TOLD and name != ABSENT:
            _touched(self)
        return ModuleType.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in TOLD:
            _touched(self)
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _touched(self)
        ModuleType.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        _touched(self)
        return [*ModuleType.__dir__(self)]


class _Loader:
    """Makes the empty module, and the second time reads it."""

    def __init__(self, loader: Any):
        self.loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _waiting.setdefault(spec.name, _Late(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name not in _started:
            if name == MODULES[-1]:
                _instead()
            return
        _started[name] = threading.get_ident()
        spec = module.__spec__
        assert spec is not None
        module.__loader__ = spec.loader = self.loader
        try:
            self.loader.exec_module(module)
        except BaseException:
            del _started[name]
            raise
        module.__class__ = ModuleType
        del _waiting[name], _started[name]


class _There:
    """Gives a module that was read while it was looked for. Python would read it again if it were among the modules by then: it
    is put back there by being loaded."""

    def __init__(self, name: str):
        self.module = sys.modules.pop(name)
        self.spec = self.module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


class _Finder:
    """Asked before Python's own: for modules that are not there yet."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith("torch.") or name in sys.modules:
            return None
        if name in MODULES and (name in _waiting or _torch_is_being_imported()):
            spec = PathFinder.find_spec(name, path)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
            return spec
        if name in COMPILERS:
            whole()
        elif (package := _waiting.get(name.rpartition(".")[0])) is not None:
            _touched(package)
        if name in sys.modules:
            return ModuleSpec(name, _There(name))  # type: ignore[arg-type]
        return _known(PathFinder.find_spec(name, path))


def _known(spec: ModuleSpec | None) -> ModuleSpec | None:
    """A module whose file inspect knows to be its own. Torch asks inspect for places in texts where it registers operations, and
    of a file not known inspect compares the files of all modules: 0.05 s."""
    if spec is not None and spec.origin is not None:
        inspect.modulesbyfile.setdefault(spec.origin, spec.name)
    return spec


_FINDER: Any = _Finder()


def _instead() -> None:
    """All that running code waits for of these modules (of ``torch._prims``, which they read): before its class is given this
    kind, no ``torch.Generator`` can be made. To give it again, as they will, changes nothing."""
    kind = importlib.import_module("torch._opaque_base").OpaqueBaseMeta
    sys.modules["torch"]._C._set_generator_metaclass(kind)


def install() -> None:
    """From here on torch is imported without them, if this one is of a version that was checked, and not here yet."""
    if "torch" in sys.modules or _FINDER in sys.meta_path:
        return
    with suppress(ImportError, OSError, ValueError):
        found = importlib.util.find_spec("torch")
        folder = next(iter((found and found.submodule_search_locations) or ()))
        version = re.search(r"""^__version__ = ["'](\d+\.\d+)\.""", (Path(folder) / "version.py").read_text(), re.MULTILINE)
        if version and version[1] in VERSIONS:
            sys.meta_path.insert(0, _FINDER)


def whole() -> None:
    """All of torch is there, or will be once it is imported."""
    if _torch_is_being_imported():
        return
    if not getattr(_reading, "now", False):
        _reading.now = True
        try:
            for name in MODULES:
                if name in _waiting:
                    _read(name)
        finally:
            _reading.now = False
    if not _waiting:
        with suppress(ValueError):
            sys.meta_path.remove(_FINDER)


def _touched(module: ModuleType) -> None:
    name = module.__name__
    if _started.get(name) == threading.get_ident():  # by itself
        return
    whole()
    if name in _waiting:
        _read(name)


def _read(name: str) -> None:
    """One module, by this thread or, once it is done, by another."""
    with _STARTING:
        if name in _waiting and name not in _started:
            _started[name] = 0
            sys.modules.pop(name, None)
    importlib.import_module(name)


def _torch_is_being_imported() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and getattr(torch.__spec__, "_initializing", False)
