"""ONNX's operators that are left out, and why."""

from __future__ import annotations

_SIZE = "the size of its result depends on the values of elements"
_SEQUENCE = "sequences are no tensors"
_OPTIONAL = "optional values are no tensors"
_STRING = "strings are not numbers"
_STEPS = "unless how often it runs is known when the model is read, 256 times at most"

LEFT_OUT: dict[str, str] = {
    # results of unknown size
    "NonMaxSuppression": _SIZE,
    "Unique": _SIZE,
    # other kinds of values
    "ConcatFromSequence": _SEQUENCE,
    "SequenceAt": _SEQUENCE,
    "SequenceConstruct": _SEQUENCE,
    "SequenceEmpty": _SEQUENCE,
    "SequenceErase": _SEQUENCE,
    "SequenceInsert": _SEQUENCE,
    "SequenceLength": _SEQUENCE,
    "SequenceMap": _SEQUENCE,
    "SplitToSequence": _SEQUENCE,
    "Optional": _OPTIONAL,
    "OptionalGetElement": _OPTIONAL,
    "OptionalHasElement": _OPTIONAL,
    "RegexFullMatch": _STRING,
    "StringConcat": _STRING,
    "StringNormalizer": _STRING,
    "StringSplit": _STRING,
    "TfIdfVectorizer": "it counts words, or n-grams of a pool that is a list of lists",
    "ImageDecoder": "its input is a file in a compressed format",
    # control flow
    "If": "unless its condition is known when the model is read, or both results have one shape",
    "Loop": _STEPS,
    "Scan": _STEPS,
}
