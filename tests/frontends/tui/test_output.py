from codex_py.frontends.tui.output import Finished


def lines(start: int, end: int) -> str:
    return "".join(f"line {n:02}\n" for n in range(start, end))


def test_waiting_text_is_taken_in_order_and_once() -> None:
    finished = Finished(110)
    assert not finished
    for n in range(25):
        finished.add(lines(n, n + 1))
    assert finished
    assert finished.take() == lines(0, 25)
    assert (bool(finished), finished.take()) == (False, "")


def test_of_far_too_much_the_middle_is_left_out_and_counted() -> None:
    finished = Finished(40)
    for n in range(90):
        finished.add(lines(n, n + 1))
    note = "\n[80 lines are not shown: the terminal took none for too long; the session has them]\n"
    assert finished.take() == lines(0, 5) + note + lines(85, 90)
    finished.add(lines(0, 1))
    assert finished.take() == lines(0, 1)


def test_the_last_that_was_added_is_kept_however_long_it_is() -> None:
    finished = Finished(40)
    finished.add(lines(0, 50))
    assert finished.take() == lines(0, 50)
