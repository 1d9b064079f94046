"""The scripts, styles and pictures that pages load. They are read once, and served from memory under one digest."""

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
    """The files below a folder that have a known type, by relative path.

    A file's address contains the digest of all files. So a browser can cache it for good, and modules import each other
    by relative paths.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        paths = sorted(path for path in folder.rglob("*") if path.suffix in _TYPES)
        self._files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        told = sha256()
        for name, content in self._files.items():
            told.update(f"{name} {len(content)}\n".encode() + content)
        self.digest = told.hexdigest()[:16]

    def find_address(self, name: str) -> str:
        """Return the URL path of a static file. Raise KeyError if the folder has no file with this name."""
        self._files[name]
        return f"{PLACE}/{self.digest}/{name}"

    def make_response(self, digest: str, name: str) -> Response | None:
        """Return the response with a static file, or None if the folder has no file with this name.

        If the URL has another release's digest, the response says not to cache the file.
        """
        content = self._files.get(name)
        if content is None:
            return None
        kept = _FOREVER if digest == self.digest else "no-store"
        return Response(content, media_type=_TYPES[Path(name).suffix], headers={"Cache-Control": kept})
