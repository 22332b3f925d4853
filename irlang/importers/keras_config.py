"""The configuration of a saved Keras model as data: layers, their nodes, what these refer to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irlang.importers.keras_file import malformed
from irlang.importers.keras_text import Config
from irlang.importers.writer import Array

MODELS = ("Functional", "Sequential", "Model")
_DEEPEST = 200  # configurations inside of one another


@dataclass(frozen=True, slots=True)
class Tensor:
    """What a node refers to: result `index` of node `node` of the layer `layer`."""

    layer: str
    node: int
    index: int


@dataclass(frozen=True, slots=True)
class Node:
    """A use of a layer. args: positional, the operands first; kwargs: by name."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spec:
    """A layer of a model. operation: whether it is a function of `keras.ops`, and no layer."""

    name: str
    config: Config
    nodes: tuple[Node, ...]
    operation: bool


def config(raw: Any, depth: int = 0) -> Any:
    """A value of a configuration: what is serialised with its class becomes a `Config`."""
    if depth > _DEEPEST:
        raise malformed("its configuration is nested too deeply")
    if isinstance(raw, list):
        return tuple(config(item, depth + 1) for item in raw)
    if not isinstance(raw, dict):
        return raw
    kind, inner = raw.get("class_name"), raw.get("config")
    if not isinstance(kind, str):
        return {str(key): config(value, depth + 1) for key, value in raw.items()}
    if kind in MODELS:
        return Config(kind, (), {"raw": inner})
    if isinstance(inner, dict):
        return Config(kind, (), {key: config(value, depth + 1) for key, value in inner.items()})
    return Config(kind, (), {"name": inner})


def layers(raw: Any) -> list[Spec]:
    """The layers of a model, in the order of its configuration."""
    given = raw.get("layers") if isinstance(raw, dict) else None
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise malformed("a model in it lists no layers")
    return [_spec(item) for item in given]


def _spec(raw: dict[str, Any]) -> Spec:
    found = config(raw)
    if not isinstance(found, Config):
        raise malformed("a layer in it has no class")
    inner = raw.get("config")
    own = inner.get("name") if isinstance(inner, dict) else None
    nodes = raw.get("inbound_nodes") or []
    if not isinstance(nodes, list):
        raise malformed("a layer in it has no list of nodes")
    name = str(raw.get("name") or own or found.kind)
    operation = str(raw.get("module") or "").startswith(("keras.src.ops", "keras.ops"))
    if "module" not in raw:  # as in `.h5` files, where a function has no `trainable`
        known = found.kind in (*MODELS, "InputLayer") or "trainable" in found.kwargs
        operation = isinstance(inner, dict) and not known and "batch_input_shape" not in inner
    return Spec(name, found, tuple(_node(item) for item in nodes), operation)


def _node(raw: Any) -> Node:
    if isinstance(raw, dict):  # Keras 3
        args, kwargs = raw.get("args", []), raw.get("kwargs", {})
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise malformed("a node in it has no arguments")
        return Node(
            tuple(argument(item) for item in args),
            {str(key): argument(value) for key, value in kwargs.items()},
        )
    if not isinstance(raw, list) or not raw:
        raise malformed("a node in it is no list")
    # Keras 2: [[layer, node, index, {arguments}], ...], or one of them alone
    items = [raw] if isinstance(raw[0], str) else raw
    kwargs = {}
    for item in items:
        if isinstance(item, list) and len(item) > 3 and isinstance(item[3], dict):
            kwargs |= {key: _older(value) for key, value in item[3].items()}
    refs = [reference(item) for item in items]
    return Node((refs[0] if len(refs) == 1 else tuple(refs),), kwargs)


def _older(raw: Any) -> Any:
    """A keyword argument of Keras 2: tensors are given by three entries."""
    if isinstance(raw, list) and len(raw) in (3, 4) and isinstance(raw[0], str):
        return reference(raw)
    if isinstance(raw, list):
        return tuple(_older(item) for item in raw)
    return raw


def reference(raw: Any) -> Tensor:
    """[layer, node, index]."""
    if (
        not isinstance(raw, list)
        or len(raw) < 3
        or not isinstance(raw[0], str)
        or not all(isinstance(item, int) for item in raw[1:3])
    ):
        raise malformed("a node in it refers to no tensor")
    return Tensor(raw[0], raw[1], raw[2])


def references(raw: Any) -> Iterator[Tensor]:
    """The tensors of a nested list, or a dictionary in the order of its keys."""
    if isinstance(raw, dict):
        for key in sorted(raw):
            yield from references(raw[key])
    elif isinstance(raw, list) and len(raw) == 3 and isinstance(raw[0], str):
        yield reference(raw)
    elif isinstance(raw, list):
        for item in raw:
            yield from references(item)
    else:
        raise malformed("its inputs or outputs are no list of tensors")


def argument(raw: Any, depth: int = 0) -> Any:
    """An argument of a node: tensors, slices, arrays, and lists and dictionaries of them."""
    if depth > _DEEPEST:
        raise malformed("an argument in it is nested too deeply")
    if isinstance(raw, list):
        return tuple(argument(item, depth + 1) for item in raw)
    if not isinstance(raw, dict):
        return raw
    kind, inner = raw.get("class_name"), raw.get("config")
    if kind == "__keras_tensor__" and isinstance(inner, dict):
        return reference(inner.get("keras_history"))
    if kind == "__slice__" and isinstance(inner, dict):
        return slice(*(argument(inner.get(key), depth + 1) for key in ("start", "stop", "step")))
    if kind == "__ellipsis__":
        return ...
    if kind in ("__tensor__", "__numpy__") and isinstance(inner, dict):
        return _constant(inner)
    if kind == "__tuple__":
        return argument(raw.get("items", []), depth + 1)
    if isinstance(kind, str):
        return config(raw, depth)
    return {str(key): argument(value, depth + 1) for key, value in raw.items()}


def _constant(raw: dict[str, Any]) -> Array:
    """A tensor whose numbers stand in the configuration."""
    try:
        array = np.array(raw.get("value"))
        kind = np.dtype(str(raw.get("dtype", array.dtype)))
        if kind.kind not in "fiub" or array.dtype.kind not in "fiub":
            raise TypeError
        return array.astype(kind)
    except (TypeError, ValueError, OverflowError):
        raise malformed("a constant in it is no tensor of numbers") from None
