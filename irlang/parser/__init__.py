"""Text to syntax tree (`parse`) and back (`printer`)."""

from irlang.parser.parse import parse, parse_expr, parse_type
from irlang.parser.table import grammar_text

__all__ = ["grammar_text", "parse", "parse_expr", "parse_type"]
