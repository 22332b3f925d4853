"""Layers of Keras that are left out, and why."""

from __future__ import annotations

_WORDS = "it looks strings up, or numbers, in a vocabulary: it belongs before the model"
_BOXES = "its values are dictionaries of images, boxes and labels"
_CODE = "it holds a program of another system"
_INSIDE = "it is a base class: what it computes is Python"
_IMAGES = "it treats an image by the least and greatest of its own values, or their histogram"
_SOUND = "its framing and padding are not those of the definition `stft`, and not composed yet"

LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(("StringLookup", "IntegerLookup", "TextVectorization"), _WORDS),
    **dict.fromkeys(("Hashing", "HashedCrossing"), "no definition has its hash function"),
    "Discretization": "its borders are those of the data that it has seen: do it before the model",
    "CategoryEncoding": "it counts categories: do it before the model",
    **dict.fromkeys(("FlaxLayer", "JaxLayer", "TFSMLayer", "TorchModuleWrapper"), _CODE),
    **dict.fromkeys(("Layer", "Wrapper"), _INSIDE),
    "Lambda": "it holds Python code, which is not run: write it as an `op` of your own",
    "Pipeline": "write its layers one after another in a `Sequential`",
    "MaxNumBoundingBoxes": _BOXES,
    **dict.fromkeys(("AutoContrast", "ContrastLimitedAdaptiveHistogramEqualization"), _IMAGES),
    "Equalization": _IMAGES,
    "RandomCrop": "it cuts or resamples by the size of the image: use CenterCrop or Resizing",
    **dict.fromkeys(("MelSpectrogram", "STFTSpectrogram"), _SOUND),
}
