"""Recorded programs of ExAIS: those of `tests/data`, and a sample of the whole set where it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.importers import exais, keras_text
from irlang.importers.keras_text import Constant, Unreadable
from irlang.interp.shape import check
from irlang.parser import parse
from irlang.parser.printer import print_file
from tests.conformance import exais as conformance

DATA = Path(__file__).parent / "data" / "exais"
WHOLE = Path(__file__).parents[2] / "shared" / "data" / "exais"
VERDICTS = {"valid": "agree", "invalid": "refused", "uncovered": "uncovered"}


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.txt"))


def edited(tmp_path: Path, name: str, old: str, new: str) -> Path:
    """A sample file with one place changed."""
    text = (DATA / name).read_text("utf-8")
    assert text.count(old) == 1
    path = tmp_path / Path(name).name
    path.write_text(text.replace(old, new), "utf-8")
    return path


@pytest.mark.parametrize("path", sources(DATA), ids=lambda p: p.stem)
def test_sample(path: Path) -> None:
    found = conformance.judge(path)
    assert found.verdict == VERDICTS[path.parent.name], found.reason


def test_every_sample_folder_has_files() -> None:
    assert {path.parent.name for path in sources(DATA)} == set(VERDICTS)


@pytest.mark.skipif(not WHOLE.is_dir(), reason="the whole set is not beside this checkout")
def test_whole_set_sampled() -> None:
    paths = [*sources(WHOLE / "valid")[::12], *sources(WHOLE / "invalid")]
    result = conformance.summary(map(conformance.judge, paths))
    assert result["failures"] == []
    assert result["refused"] == len(sources(WHOLE / "invalid"))
    assert result["agree"] == len(paths) - result["refused"]


def test_another_last_digit_disagrees(tmp_path: Path) -> None:
    path = edited(
        tmp_path,
        "valid/picture.txt",
        "Actual (Unparsed): [[ 0.5872240",
        "Actual (Unparsed): [[ 0.5872242",
    )
    found = conformance.judge(path)
    assert found.verdict == "disagree"
    assert "1 of 2 elements differ; [0, 0]" in found.reason


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Masking(mask_value=1,", "Masking(mask_value=3,"),  # no step of it is masked any more
        ("reset_after=False", "reset_after=False, activation='relu'"),
        ("go_backwards=True", "go_backwards=False"),
        ("epsilon=0.5", "epsilon=0.501"),
        ("[[0.3, 0.6], [1, 1]", "[[0.3, 0.6], [1, 1.5]"),
    ],
)
def test_a_change_of_the_program_disagrees(tmp_path: Path, old: str, new: str) -> None:
    found = conformance.judge(edited(tmp_path, "valid/masked_sequence.txt", old, new))
    assert found.verdict == "disagree", found


def test_an_invalid_program_that_is_repaired_is_not_refused(tmp_path: Path) -> None:
    path = edited(
        tmp_path, "invalid/vocabulary.txt", "tf.constant([[0, 4, 1]])", "tf.constant([[0, 3, 1]])"
    )
    found = conformance.judge(path)
    assert found.verdict == "disagree"
    assert "accepted" in found.reason


def test_refused_elsewhere_is_not_refused_there(tmp_path: Path) -> None:
    path = edited(tmp_path, "invalid/merge.txt", "\nMax3: Incons", "\nPer2: Incons")
    found = conformance.judge(path)
    assert found.verdict == "disagree"
    assert "refused elsewhere than at `Per2`: maximum_n" in found.reason


def test_only_a_layer_can_be_at_fault(tmp_path: Path) -> None:
    old = "Expected (Unparsed): [[ 0.5872240"
    path = edited(tmp_path, "valid/picture.txt", old, "Expected (Unparsed): Warning: of no use [[")
    assert conformance.judge(path).verdict == "agree"


def test_text_is_written_as_a_person_would_keep_it() -> None:
    record = exais.split((DATA / "valid" / "masked_sequence.txt").read_text("utf-8"))
    text = exais.translate(keras_text.read(record.keras), "masked").text
    assert "  Mas1_mask = reduce_any(Mas1_used; axes = [-1])\n" in text
    assert "GRU3 = gru(Mas1, GRU3_w, GRU3_r; b = GRU3_b, rb = GRU3_rb, mask = Mas1_mask" in text
    assert max(map(len, text.splitlines())) <= 140
    tree = parse(text, "masked.nnir")
    assert parse(print_file(tree), "masked.nnir") == tree


def test_what_a_file_says_is_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    call = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    path = edited(tmp_path, "invalid/merge.txt", "Permute((2,1)", f"Permute((2,1), {call}")
    with path.open("a") as stream:
        stream.write(f"\n{call}\n")
    assert conformance.judge(path).verdict == "uncovered"
    assert not mark.exists()


@pytest.mark.parametrize(
    "text",
    [
        "x = (",
        "x = 1",
        "x = Input(shape = [2])\ny = Dense(2)(x)\nm = Model(inputs = [x], outputs = y)",  # no value
        "x = Input(shape = f())",
        "m = Model(inputs = [1], outputs = y)",
        "x = " + "[" * 2000 + "]" * 2000,
        'w = m.get_layer("a").get_weights()\nw[[0]] = array([1])',
    ],
)
def test_what_is_no_such_program_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        keras_text.read(text)


def test_constants_are_single_precision_and_integers_are_exact() -> None:
    assert exais.fed_as(Constant([0.1, 1])).tolist() == [float(np.float32(0.1)), 1.0]
    assert exais.fed_as(Constant([[3]])).tolist() == [[3.0]]
    assert exais.fed_as(Constant([0.1], "float64")).tolist() == [0.1]


def test_tolerance_is_half_of_the_last_printed_decimal() -> None:
    assert conformance.half_unit("[[0.1234567, -2.1000000]]") == 0.5e-7
    assert conformance.half_unit("[1.25, 3.125]") == 0.5e-2
    assert conformance.half_unit("[nan, 12]") == 0.5


def test_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert conformance.main([str(DATA), "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    valid, invalid = len(sources(DATA / "valid")), len(sources(DATA / "invalid"))
    assert [result[key] for key in conformance.VERDICTS] == [valid, 0, invalid, 1]
    assert [Path(item["file"]).stem for item in result["failures"]] == ["buckets"]
    assert result["failures"][0]["kind"] == "Discretization"
    edited(
        tmp_path, "valid/volume.txt", "Actual (Unparsed): [[[ -0.28", "Actual (Unparsed): [[[ -0.29"
    )
    assert conformance.main([str(tmp_path)]) == 1
    assert "disagree: " in capsys.readouterr().out
    assert conformance.main([str(tmp_path / "nowhere")]) == 2
    assert conformance.main([str(tmp_path), "--jobs", "0"]) == 2


@pytest.mark.parametrize(("size", "window", "stride"), [(5, 3, 2), (4, 2, 1), (6, 2, 4)])
@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("first", [False, True])
def test_a_locally_connected_layer_of_all_pairs(
    size: int, window: int, stride: int, padding: str, first: bool
) -> None:
    """`implementation=2`, which TensorFlow 2.4 has in single precision only: no program of it."""
    rng = np.random.default_rng(1)
    many = -(-size // stride) if padding == "same" else (size - window) // stride + 1
    kernel = rng.normal(size=(2, size, 3, many) if first else (size, 2, many, 3))
    x = rng.normal(size=(1, 2, size) if first else (1, size, 2))
    order = ", data_format='channels_first'" if first else ""
    text = (
        f"i = keras.layers.Input(shape=({list(x.shape[1:])}))\n"
        f"y = keras.layers.LocallyConnected1D(3, {window}, strides={stride}, padding='{padding}', "
        f"implementation=2, use_bias=False{order}, name='y')(i)\n"
        "model = keras.models.Model(inputs=[i], outputs=y)\n"
        "w = model.get_layer('y').get_weights()\n"
        f"w[0] = np.array({kernel.tolist()})\n"
        f"i = tf.constant({x.tolist()}, dtype='float64')\n"
    )
    made = exais.translate(keras_text.read(text))
    found = conformance._evaluate(made, check(parse(made.text, "local.nnir"), builtin()))
    places = np.arange(size)[:, None] - np.arange(many) * stride
    places = places + (window // 2 if padding == "same" else 0)
    seen = (places >= 0) & (places < window)
    equation = "nci,cifo,io->nfo" if first else "nic,icof,io->nof"
    np.testing.assert_allclose(found, np.einsum(equation, x, kernel, seen), rtol=1e-12)
