"""Layers of Keras, each as calls of the definitions, and what comes of one as values with masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irlang.importers.keras_activations import ACTIVATIONS
from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_attention import ATTENTION
from irlang.importers.keras_call import Call, Sheet, Value
from irlang.importers.keras_conv_lstm import CONV_LSTM
from irlang.importers.keras_local import LOCAL
from irlang.importers.keras_masks import result_masks
from irlang.importers.keras_norms import NORMS
from irlang.importers.keras_products import PRODUCTS
from irlang.importers.keras_recurrent import RECURRENT
from irlang.importers.keras_resample import RESAMPLE
from irlang.importers.keras_shapes import SHAPES
from irlang.importers.keras_text import Config
from irlang.importers.keras_weights import Weights
from irlang.importers.keras_wrappers import WRAPPERS

LAYERS: dict[str, Callable[[Call], str | list[str]]] = {
    **PRODUCTS,
    **LOCAL,
    **SHAPES,
    **RESAMPLE,
    **ACTIVATIONS,
    **NORMS,
    **RECURRENT,
    **CONV_LSTM,
    **ATTENTION,
    **WRAPPERS,
}


def write_layer(
    sheet: Sheet,
    name: str,
    config: Config,
    values: Sequence[Value],
    weights: Weights,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> list[Value]:
    """Writes a layer; what it gives, in order.

    Raises `Uncovered` for a layer or an argument that is not translated, `Fault` where a definition
    refuses it.
    """
    call = Call(sheet, name, config, values, weights, args, kwargs)
    write = LAYERS.get(call.a.kind)
    if write is None:
        raise Uncovered(call.a.kind, "this kind of layer stands on its own nowhere")
    call.adapt()
    results = write(call)
    names = [results] if isinstance(results, str) else results
    masks = result_masks(call, len(names))
    call.a.finish()
    return [Value(found, mask) for found, mask in zip(names, masks, strict=True)]
