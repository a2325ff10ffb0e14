"""Where the files that come along are: beside the package in a checkout, within it when installed."""

from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def data_folder(name: str) -> Path:
    """The folder `examples` or `profiles`. It need not exist: a broken installation is the caller's to name."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
