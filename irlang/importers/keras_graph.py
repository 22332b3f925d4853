"""Walks through the layers of a saved Keras model, and those of the models inside it.

What cannot be translated is noted, and the walk goes on with what does not depend on it, so that
everything is said at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irlang.diagnostics import Diagnostic
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.importers import keras_config
from irlang.importers.keras_arguments import Arguments, Uncovered
from irlang.importers.keras_call import Sheet, Value, element
from irlang.importers.keras_config import MODELS, Spec, Tensor
from irlang.importers.keras_file import Named, Saved, malformed
from irlang.importers.keras_layers import write_layer
from irlang.importers.keras_names import snake_case, unique
from irlang.importers.keras_ops import OPERATIONS, write_operation
from irlang.importers.keras_signatures import ALIASES
from irlang.importers.keras_text import Config
from irlang.importers.keras_weights import NONE, Weights
from irlang.importers.writer import Array, Fault, Writer


@dataclass(slots=True)
class Walk:
    """A model on its way to text.

    sizes: what stands for a size that the model leaves open, by its name. problems: what cannot be
    translated. inputs: names of the values by those of the model's inputs.
    """

    saved: Saved
    writer: Writer
    sizes: Mapping[str, int]
    problems: list[Diagnostic] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)

    def run(self) -> list[str]:
        """Writes the model; the names of its results."""
        sheet = Sheet(self.writer, self.saved.version, self.apply)
        raw = self.saved.config
        found = config_of(raw)
        self.unsupported(found, ())
        if self.problems:
            return []
        given = [self._input(spec) for spec in _inputs(found)]
        if self.problems:
            return []
        outputs = self.model(sheet, found, given, self.saved.weights, ())
        names: list[str] = []
        for value in outputs:
            if value is None:
                continue
            name = sheet.last(value.name)
            again = name in names or name in self.writer.inputs
            names.append(self.writer.call([name], "identity", name)[0] if again else name)
        return names

    # ---- what is not supported, before anything is written

    def unsupported(self, found: Config, path: tuple[str, ...]) -> None:
        """Notes every layer that has no translation, in the models inside too."""
        if found.kind not in MODELS:
            self._note(path, found.kind, "this is no functional or sequential model", _RULE)
            return
        for spec in keras_config.layers(found.kwargs["raw"]):
            place = (*path, spec.name)
            if spec.config.kind in MODELS:
                self.unsupported(spec.config, place)
            elif spec.operation:
                if spec.config.kind not in OPERATIONS:
                    self._note(place, f"keras.ops {spec.config.kind}", "it has no translation")
            elif spec.config.kind != "InputLayer":
                self._check(spec.config, place)

    def _check(self, found: Config, place: tuple[str, ...]) -> None:
        if found.kind == "Lambda":
            reason = "it runs code of its own, which is not looked at"
            self._note(place, "Lambda", reason, "write an `op` for what it computes")
            return
        try:
            Arguments(found)
        except Uncovered as error:
            self._note(place, error.kind, error.reason)
        for inner in found.kwargs.values():
            items = inner if isinstance(inner, tuple) else (inner,)
            for item in items:
                if isinstance(item, Config) and item.kind in MODELS:
                    self.unsupported(item, place)

    def _note(self, path: Sequence[str], kind: str, reason: str, help: str = "") -> None:
        name = "/".join(path)
        message = f"layer `{name}` ({kind}): {reason}" if name else f"{kind}: {reason}"
        self.problems.append(Diagnostic("import.layer", message, node=name, help=help))

    # ---- models

    def _input(self, spec: Spec) -> Value:
        kwargs = spec.config.kwargs
        shape = kwargs.get("batch_shape") or kwargs.get("batch_input_shape")
        whole = isinstance(shape, tuple) and all(n is None or isinstance(n, int) for n in shape)
        if not isinstance(shape, tuple) or not whole or min([n or 0 for n in shape], default=0) < 0:
            raise malformed(f"its input `{spec.name}` has no shape")
        if kwargs.get("sparse") or kwargs.get("ragged"):
            self._note((spec.name,), "InputLayer", "its tensor is sparse or ragged")
        sizes = [self.sizes[_open(d)] if n is None else n for d, n in enumerate(shape)]
        given = kwargs.get("dtype", "float32")
        try:
            dtype = element(given.kwargs.get("name") if isinstance(given, Config) else given)
        except Uncovered as error:
            self._note((spec.name,), "InputLayer", error.reason)
            dtype = "f32"
        name = self.writer.input(spec.name, TensorInfo(tuple(sizes), dtype))
        self.inputs[spec.name] = name
        return Value(name)

    def apply(
        self,
        sheet: Sheet,
        name: str,
        found: Config,
        values: Sequence[Value],
        weights: Weights,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> list[Value]:
        """A layer inside of another, which may be a model."""
        if found.kind not in MODELS:
            return write_layer(sheet, name, found, values, weights, args, kwargs)
        results = self.model(sheet, found, values, weights, (name,))
        known = [value for value in results if value is not None]
        if len(known) < len(results):
            raise Uncovered(found.kind, "a layer inside is not translated")
        return known

    def model(
        self,
        sheet: Sheet,
        found: Config,
        given: Sequence[Value],
        weights: Weights,
        path: tuple[str, ...],
    ) -> list[Value | None]:
        """Writes the layers of a model; its results, None where a layer left a hole."""
        raw = found.kwargs["raw"]
        specs = keras_config.layers(raw)
        own = _weights(specs, found.kind, weights, path)
        values: dict[Tensor, Value | None] = {}
        if found.kind == "Sequential":
            current: list[Value | None] = list(given)
            for spec in specs:
                if spec.config.kind != "InputLayer":
                    current = self.layer(sheet, spec, current, (), {}, own[spec.name], path)
            return current
        starts = list(keras_config.references(raw.get("input_layers")))
        if len(starts) != len(given):
            raise malformed(f"a model with {len(starts)} inputs is called on {len(given)}")
        values.update(zip(starts, given, strict=True))
        waiting = [
            (s, number) for s in specs for number in range(len(s.nodes)) if s.nodes[number].args
        ]
        while waiting:
            ready = [item for item in waiting if _known(item[0].nodes[item[1]], values)]
            if not ready:
                raise malformed("its layers wait for one another")
            for spec, number in ready:
                node = spec.nodes[number]
                args = [_resolved(item, values) for item in node.args]
                kwargs = {key: _resolved(item, values) for key, item in node.kwargs.items()}
                results = self._node(sheet, spec, args, kwargs, own, path)
                number += _first_node(sheet.version, spec)
                for index, value in enumerate(results):
                    values[Tensor(spec.name, number, index)] = value
                if results == [None]:
                    _fill(values, spec.name, number, specs, raw)
            waiting = [item for item in waiting if item not in ready]
        ends = list(keras_config.references(raw.get("output_layers")))
        if not ends or any(end not in values for end in ends):
            raise malformed("a result in it is made by no layer")
        return [values[end] for end in ends]

    def _node(
        self,
        sheet: Sheet,
        spec: Spec,
        args: list[Any],
        kwargs: dict[str, Any],
        own: Mapping[str, Weights],
        path: tuple[str, ...],
    ) -> list[Value | None]:
        if _holes((args, kwargs)):
            return [None]
        if spec.operation:
            return self._attempt(
                sheet,
                spec,
                path,
                lambda name: write_operation(sheet, name, spec.config, args, kwargs),
            )
        operands = list(_flat(args[0]))
        return self.layer(sheet, spec, operands, args[1:], kwargs, own[spec.name], path)

    def layer(
        self,
        sheet: Sheet,
        spec: Spec,
        operands: Sequence[Value | None],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        weights: Weights,
        path: tuple[str, ...],
    ) -> list[Value | None]:
        """Writes a layer of a model; what it gives, or a hole."""
        values = [value for value in operands if value is not None]
        if len(values) < len(operands):
            return [None]

        def write(name: str) -> Sequence[Value | None]:
            if spec.config.kind in MODELS:
                return self.model(sheet, spec.config, values, weights, (*path, spec.name))
            constants = {key: _placed(sheet, name, key, v) for key, v in kwargs.items()}
            placed = [_placed(sheet, name, str(i), v) for i, v in enumerate(args)]
            return write_layer(sheet, name, spec.config, values, weights, placed, constants)

        return self._attempt(sheet, spec, path, write)

    def _attempt(
        self, sheet: Sheet, spec: Spec, path: tuple[str, ...], write: Any
    ) -> list[Value | None]:
        place = (*path, spec.name)
        sheet.writer.owner = "/".join(place)
        try:
            return list(write("_".join(place)))
        except Uncovered as error:
            self._note(place, error.kind, error.reason)
        except Fault as fault:
            for _, message in fault.faults or [("", str(fault))]:
                self._note(place, spec.config.kind, message)
        return [None]


def _first_node(version: int, spec: Spec) -> int:
    """The number of a layer's first use. Keras 2 counts a model's own inputs as a use before it."""
    if version == 3 or spec.config.kind not in MODELS:
        return 0
    inner = keras_config.layers(spec.config.kwargs["raw"])
    return int(bool(inner) and inner[0].config.kind == "InputLayer")


_RULE = "a subclassed model has no layers that can be read: export it by ONNX or PyTorch"


def config_of(raw: dict[str, Any]) -> Config:
    """The configuration of the whole model."""
    found = keras_config.config(raw)
    if not isinstance(found, Config):
        raise malformed("its configuration is that of no model")
    inner = raw["config"]
    functional = {"layers", "input_layers", "output_layers"} <= inner.keys()
    return Config("Functional", (), {"raw": inner}) if functional else found


def _inputs(found: Config) -> list[Spec]:
    """The inputs of a model, in order."""
    raw = found.kwargs["raw"]
    specs = keras_config.layers(raw)
    if found.kind != "Sequential":
        by_name = {spec.name: spec for spec in specs}
        names = [tensor.layer for tensor in keras_config.references(raw.get("input_layers"))]
        if any(name not in by_name for name in names):
            raise malformed("an input of it is no layer")
        return [by_name[name] for name in names]
    for spec in specs[:1]:
        kwargs = spec.config.kwargs
        if spec.config.kind == "InputLayer":
            return [spec]
        if spec.config.kind in MODELS:
            return _inputs(spec.config)
        shape = keras_config.config(raw.get("build_input_shape"))
        shape = kwargs.get("batch_input_shape") or kwargs.get("batch_shape") or shape
        config = Config("InputLayer", (), {"batch_shape": shape, "dtype": kwargs.get("dtype")})
        if config.kwargs["dtype"] is None:
            del config.kwargs["dtype"]
        return [Spec(f"{spec.name}_input", config, (), operation=False)]
    raise malformed("it has no layers")


def open_sizes(raw: dict[str, Any]) -> list[str]:
    """The sizes that the inputs of a model leave open: of the batch, and of other axes."""
    found = config_of(raw)
    if found.kind not in MODELS:
        return []
    names: dict[str, None] = {}
    for spec in _inputs(found):
        kwargs = spec.config.kwargs
        shape = kwargs.get("batch_shape") or kwargs.get("batch_input_shape")
        for axis, size in enumerate(shape if isinstance(shape, tuple) else ()):
            if size is None:
                names[_open(axis)] = None
    return list(names)


def _open(axis: int) -> str:
    """The name of a size that is open. The same axis of two inputs has the same size."""
    return f"D{axis}" if axis else "N"


def _weights(
    specs: Sequence[Spec], kind: str, weights: Weights, path: tuple[str, ...]
) -> dict[str, Weights]:
    """The weights of the layers of a model, by the layers' names."""
    if isinstance(weights, Named):
        return {
            spec.name: weights if spec.config.kind in MODELS else weights.layer((*path, spec.name))
            for spec in specs
        }
    kept = [spec for spec in specs if not spec.operation]
    if kind == "Sequential" and kept and kept[0].config.kind == "InputLayer":
        kept = kept[1:]
    kinds = [ALIASES.get(spec.config.kind, spec.config.kind) for spec in kept]
    places = unique([snake_case(kind) for kind in kinds])
    found: dict[str, Weights] = dict.fromkeys((spec.name for spec in specs), NONE)
    for spec, place in zip(kept, places, strict=True):
        names = (f"layers/{place}", f"_layer_checkpoint_dependencies/{place}")
        found[spec.name] = weights.part(names, 0)
    return found


# ---- arguments


def _flat(item: Any) -> list[Any]:
    """The tensors of a nested argument, in order."""
    if isinstance(item, dict):
        return [found for key in sorted(item) for found in _flat(item[key])]
    if isinstance(item, (list, tuple)):
        return [found for inner in item for found in _flat(inner)]
    return [item]


def _known(node: Any, values: Mapping[Tensor, Value | None]) -> bool:
    items = [*_flat(node.args), *_flat(node.kwargs)]
    return all(item in values for item in items if isinstance(item, Tensor))


def _resolved(item: Any, values: Mapping[Tensor, Value | None]) -> Any:
    """An argument with values in place of tensors."""
    if isinstance(item, Tensor):
        return values[item] or _HOLE
    if isinstance(item, tuple):
        return tuple(_resolved(inner, values) for inner in item)
    if isinstance(item, dict):
        return {key: _resolved(inner, values) for key, inner in item.items()}
    return item


_HOLE = object()


def _holes(items: Any) -> bool:
    return any(item is _HOLE for item in _flat(items))


def _fill(
    values: dict[Tensor, Value | None],
    name: str,
    number: int,
    specs: Sequence[Spec],
    raw: Mapping[str, Any],
) -> None:
    """Holes for all results of a layer that anybody asks for."""
    asked = [item for s in specs for n in s.nodes for item in _flat((n.args, n.kwargs))]
    asked += list(keras_config.references(raw.get("output_layers")))
    for item in asked:
        if isinstance(item, Tensor) and (item.layer, item.node) == (name, number):
            values[item] = None


def _placed(sheet: Sheet, name: str, key: str, item: Any) -> Any:
    """A constant that a layer is called with, as a parameter."""
    if not isinstance(item, np.ndarray):
        return item
    return Value(constant(sheet, f"{name}_{key}", item))


def constant(sheet: Sheet, wanted: str, array: Array) -> str:
    """Numbers from a configuration as a parameter."""
    dtype = next(key for key, item in DTYPES.items() if item.numpy == array.dtype)
    return sheet.writer.param(wanted, TensorInfo(array.shape, dtype), array)
