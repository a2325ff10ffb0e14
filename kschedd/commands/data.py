"""The location of bundled data files: beside the package in a checkout, within it when installed."""

from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def data_folder(name: str) -> Path:
    """The directory `examples` or `profiles`. It may not exist: the caller reports a broken installation."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
