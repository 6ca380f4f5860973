import pytest

from evengraph.core.machine import available_memory, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("512MiB", 2**29), ("2G", 2**31), (" 1.5 kb ", 1500), (77, 77), ("9", 9)],
)
def test_sizes_are_read(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "4 bananas", "-1GB", "0", "GB", 0])
def test_other_texts_are_errors(text):
    with pytest.raises(ValueError, match="memory must be a size such as 4GB"):
        parse_size(text)


def test_sizes_are_printed_with_a_unit():
    sizes = 12, 1500, 300 * 2**20, 1.5 * 2**30, 3 * 2**40
    assert [format_size(size) for size in sizes] == [
        "12 B", "1.5 KiB", "300 MiB", "1.5 GiB", "3.0 TiB"
    ]  # fmt: skip


def test_some_memory_is_available():
    assert 2**20 < available_memory() < 2**50
