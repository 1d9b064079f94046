"""The scripts, styles and pictures that pages load: read once, and served from memory under their common digest."""

from hashlib import sha256
from pathlib import Path

from starlette.responses import Response

FOLDER = Path(__file__).parent / "static"
PLACE = "/console/static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOREVER = "public, max-age=31536000, immutable"


class StaticFolder:
    """Every file below a folder that has a type of ours, by its path there.

    The address of a file names the digest of all: a browser keeps it for good, and modules find each other beside them.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        paths = sorted(path for path in folder.rglob("*") if path.suffix in _TYPES)
        self._files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        told = sha256()
        for name, content in self._files.items():
            told.update(f"{name} {len(content)}\n".encode() + content)
        self.digest = told.hexdigest()[:16]

    def find_address(self, name: str) -> str:
        """Return the address at which a page finds a file. Raise KeyError for one that is not there."""
        self._files[name]
        return f"{PLACE}/{self.digest}/{name}"

    def make_response(self, digest: str, name: str) -> Response | None:
        """Return a file as it is sent; None if there is none. Under the digest of another release it is not cached."""
        content = self._files.get(name)
        if content is None:
            return None
        kept = _FOREVER if digest == self.digest else "no-store"
        return Response(content, media_type=_TYPES[Path(name).suffix], headers={"Cache-Control": kept})
