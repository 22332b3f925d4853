"""`irlang fmt` loses nothing: comments, blank lines and tokens stay, and twice is once."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.commands.fmt import format_text
from irlang.parser import parse
from irlang.parser.lex import scan
from irlang.parser.printer import print_file
from irlang.parser.table import table
from tests.test_printer import TEXTS, files, same


def comments_of(text: str) -> Counter[str]:
    return Counter(comment.text for comment in scan(text, table()).comments)


@st.composite
def commented(draw: st.DrawFn) -> tuple[str, str]:
    """A file as it is printed, and the same with comments and line breaks between its tokens."""
    text = print_file(draw(files))
    pieces: list[str] = []
    for number, token in enumerate(scan(text, table()).texts):
        gap = draw(st.sampled_from([" ", " ", " ", "\n", "\n\n\n", " # c", "\n# c", "\n\n  # c"]))
        if pieces and pieces[-1] == "#":
            gap = ""  # with a blank behind, this sign starts a comment
        if "#" in gap:
            gap += draw(st.sampled_from([f"{number}\n", f"{number}  \n", f"{number}\n\n\n"]))
        pieces += (gap, token)
    return text, "".join(pieces) + draw(
        st.sampled_from(["", "\n", "\n\n# end", "  # end\n", "\n#"])
    )


@given(commented())
@settings(max_examples=50)
def test_nothing_is_lost_wherever_comments_stand(case: tuple[str, str]) -> None:
    plain, spoiled = case
    formatted = format_text(spoiled)
    assert same(parse(formatted), parse(plain))
    assert comments_of(formatted) == comments_of(spoiled)
    assert format_text(formatted) == formatted


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_the_texts_of_the_repository_lose_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    formatted = format_text(text)
    assert comments_of(formatted) == comments_of(text)
    assert format_text(formatted) == formatted


BEFORE = '''\
# a licence

nnir 1 # the version
let a=1
let b=2



# about the model
"""What it does."""
# between
model m(x: f32[1], # first
  z: f32[1]) -> y: f32[1] { # opened


  # leading

  # leading too
  h = f(x, # inside
        z) # trailing


  for i<2 { # loop
  } # looped
  y = g(h)
  # dangling

}   # closed

#last
'''.replace("#last", "# last")

AFTER = '''\
# a licence

nnir 1  # the version

let a = 1
let b = 2

# about the model
# between
# first
"""What it does."""
model m(x: f32[1], z: f32[1]) -> y: f32[1] {
  # opened

  # leading

  # leading too
  # inside
  h = f(x, z)  # trailing

  for i < 2 {
    # loop
  }  # looped
  y = g(h)
  # dangling
}  # closed

# last
'''


def test_where_comments_go() -> None:
    assert format_text(BEFORE) == AFTER
    assert format_text(AFTER) == AFTER


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("\n\n\n", ""),
        ("# alone", "# alone\n"),
        ("\n\n# a\n\n\n\n# b\n\n", "# a\n\n# b\n"),
        ("nnir 1", "nnir 1\n"),
        ("nnir 1\n# a", "nnir 1\n\n# a\n"),
        ("let a = 1 # x\nlet b = 2", "let a = 1  # x\nlet b = 2\n"),
        ('let a = "# no comment"', 'let a = "# no comment"\n'),
        ("let a = 1\r\n\r\n# c\r\n", "let a = 1\n\n# c\n"),
        ("let a = #xs # how many", "let a = #xs  # how many\n"),
        ("#! a\n## b\n#\nlet a = 1", "#! a\n## b\n#\nlet a = 1\n"),
        ("let a = 1\n\n\n\nlet b = 2\n", "let a = 1\n\nlet b = 2\n"),
    ],
)
def test_small_files(before: str, after: str) -> None:
    assert format_text(before) == after


def test_blank_lines_are_at_most_one() -> None:
    assert not re.search("\n\n\n", format_text(BEFORE.replace("\n", "\n\n\n")))
