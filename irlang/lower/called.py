"""What targets are called where a framework's maintainers read it: not by this tool's names."""

from __future__ import annotations

from irlang.lower.target import describe

# By the framework and its mode; the version stands where the braces are.
CALLED = {
    "torch": "PyTorch{}",
    "torch:compile": "PyTorch{}, torch.compile",
    "torch:aot": "PyTorch{}, torch.compile without Inductor",
    "torch:export": "PyTorch{}, torch.export",
    "torch:meta": "PyTorch{}, meta device",
    "torch:vmap": "PyTorch{}, torch.vmap",
    "torch:forward": "PyTorch{}, forward mode",
    "torch:triton": "PyTorch{}, torch.compile on a GPU",
    "torch:cuda": "PyTorch{} on a GPU",
    "torch:tf32": "PyTorch{} on a GPU, TF32",
    "tf": "TensorFlow{}",
    "tf:graph": "TensorFlow{}, tf.function",
    "tf:xla": "TensorFlow{}, XLA",
    "tf:vmap": "TensorFlow{}, tf.vectorized_map",
    "tf:gpu": "TensorFlow{} on a GPU",
    "tf:tf32": "TensorFlow{} on a GPU, TF32",
    "tf:shapes": "TensorFlow{}, inferred shapes",
    "tf:keras": "tf.keras of TensorFlow{}",
    "jax": "JAX{}",
    "jax:jit": "JAX{}, jax.jit",
    "jax:vmap": "JAX{}, jax.vmap",
    "jax:forward": "JAX{}, forward mode",
    "jax:gpu": "JAX{} on a GPU",
    "jax:tf32": "JAX{} on a GPU, TF32",
    "mxnet": "MXNet{}",
    "mxnet:hybrid": "MXNet{}, hybridized",
    "keras:tensorflow": "Keras{} on TensorFlow",
    "keras:shapes": "Keras{} on TensorFlow, inferred shapes",
    "keras:torch": "Keras{} on PyTorch",
    "keras:jax": "Keras{} on JAX",
    "keras:theano": "Keras{} on Theano",
    "onnxruntime": "ONNX Runtime{}",
    "onnxruntime:plain": "ONNX Runtime{}, graph optimisation off",
    "onnxruntime:shapes": "ONNX Runtime{}, inferred shapes",
    "onnxruntime:cuda": "ONNX Runtime{}, CUDA",
    "openvino": "OpenVINO{}",
    "openvino:default": "OpenVINO{}, default precision",
    "onnx-reference": "onnx.reference{}",
    "onnx:shapes": "onnx.shape_inference{}",
    "tflite": "TensorFlow Lite{}",
}


def called(target: str, version: str = "") -> str:
    """`TensorFlow 2.4.0, tf.function` of a target and its version; without one, the name alone.

    Raises `usage.target` where there is no such target.
    """
    found = describe(target)
    own = f"{found.framework}:{found.mode}".removesuffix(":")
    name = own if own in CALLED else found.mode  # those that take another's programs
    return CALLED[name].format(f" {version}" if version else "")
