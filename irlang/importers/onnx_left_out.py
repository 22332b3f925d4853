"""ONNX's operators that are left out, and why."""

from __future__ import annotations

LEFT_OUT: dict[str, str] = {}
