"""Labels of right files; tests/campaigns has the wrong ones."""

from retrace.files.formats import labels_of


def test_labels_are_text_however_they_are_written() -> None:
    rows = [("f", {"label": label}) for label in ("None", " a ", 1, 1.0, -2.0)]
    assert labels_of(rows, "label") == ["None", "a", "1", "1", "-2"]
