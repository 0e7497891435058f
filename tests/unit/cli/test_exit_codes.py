"""Exit codes of the command line."""

import pytest

from llcg_dist.cli.exit_codes import exit_code_of
from llcg_dist.errors import TrainingError, UserError


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("seed=x: must be a number"), 2, "seed=x: must be a number"),
        (TrainingError("the loss of part 1 is not finite"), 1, "the loss of part 1 is not finite"),
        (MemoryError("8 GB"), 2, "not enough memory (8 GB)"),
        (KeyboardInterrupt(), 130, "SIGINT"),
    ],
)
def test_errors_that_are_expected_are_one_line(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> int:
        raise error

    assert exit_code_of(command) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("llcg: error: ")
    assert said in line


def test_the_commands_own_code_is_returned_and_other_errors_are_raised() -> None:
    assert exit_code_of(lambda: 0) == 0
    assert exit_code_of(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        exit_code_of(lambda: 1 // 0)


def test_a_full_disk_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> int:
        raise OSError(28, "No space left on device", "/full/x.npy")

    assert exit_code_of(command) == 1
    advice = "make room, and start the same command again"
    assert capsys.readouterr().err == f"llcg: error: /full/x.npy: No space left on device; {advice}\n"


def test_a_closed_pipe_is_no_error() -> None:
    def command() -> int:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        exit_code_of(command)
