"""The part of Superset's REST API that the show needs."""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from http.cookiejar import CookieJar
from typing import Any


class SupersetError(Exception):
    """The error for an answer of Superset that is an error. Its text is the one that a person would see."""


class SupersetApi:
    """Superset at `url`, as `user`. Every method raises Refused."""

    def __init__(self, url: str, *, user: str, password: str) -> None:
        self.url = url
        self._cookies = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))
        self._open("POST", "/login/", urllib.parse.urlencode({"username": user, "password": password}).encode(), {})

    @property
    def cookies(self) -> tuple[tuple[str, str], ...]:
        """The name and value of each of the session's cookies, for a browser."""
        return tuple((cookie.name, cookie.value or "") for cookie in self._cookies)

    def connect(self, name: str, *, url: str, options: str) -> int:
        """Make a database connection, after Superset has tried it; `options` are the session's settings."""
        engine = {"engine_params": {"connect_args": {"options": options}}}
        body = {"database_name": name, "sqlalchemy_uri": url, "expose_in_sqllab": True, "extra": json.dumps(engine)}
        made: int = self._post_json("/api/v1/database/", body)["id"]
        return made

    def list_schemas(self, database: int) -> list[str]:
        """Return the names of the database's schemas."""
        found: list[str] = self._get_json(f"/api/v1/database/{database}/schemas/")["result"]
        return found

    def list_relations(self, database: int, schema: str) -> list[tuple[str, str]]:
        """Return the name and kind of each relation that a user can choose in a schema."""
        found = self._get_json(f"/api/v1/database/{database}/tables/?q=(schema_name:{schema},force:!t)")["result"]
        return [(each["value"], each["type"]) for each in found]

    def list_columns(self, database: int, schema: str, relation: str) -> list[tuple[str, str, str]]:
        """Return the name, type and comment of each of a relation's columns."""
        found = self._get_json(f"/api/v1/database/{database}/table_metadata/?name={relation}&schema={schema}")[
            "columns"
        ]
        return [(each["name"], each["longType"], each["comment"] or "") for each in found]

    def run_in_sql_lab(self, database: int, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a statement that is run as in SQL Lab."""
        body = {"database_id": database, "schema": "public", "sql": sql, "runAsync": False, "queryLimit": 1000}
        found: list[dict[str, Any]] = self._post_json("/api/v1/sqllab/execute/", body)["data"]
        return found

    def make_dataset(self, database: int, schema: str, relation: str) -> int:
        """Make a dataset of a relation."""
        made: int = self._post_json(
            "/api/v1/dataset/", {"database": database, "schema": schema, "table_name": relation}
        )["id"]
        return made

    def make_virtual_dataset(self, database: int, name: str, sql: str) -> int:
        """Create a dataset from an SQL query."""
        body = {"database": database, "schema": "public", "table_name": name, "sql": sql}
        made: int = self._post_json("/api/v1/dataset/", body)["id"]
        return made

    def make_dashboard(self, title: str) -> int:
        """Make an empty dashboard."""
        made: int = self._post_json("/api/v1/dashboard/", {"dashboard_title": title, "published": True})["id"]
        return made

    def make_chart(self, title: str, *, dataset: int, kind: str, dashboard: int, shown: Mapping[str, Any]) -> int:
        """Make a chart of a dataset, on a dashboard; `shown` are the chart's own fields."""
        form = {"viz_type": kind, "datasource": f"{dataset}__table", **shown}
        body = {
            "slice_name": title,
            "viz_type": kind,
            "datasource_id": dataset,
            "datasource_type": "table",
            "params": json.dumps(form),
            "dashboards": [dashboard],
        }
        made: int = self._post_json("/api/v1/chart/", body)["id"]
        return made

    def arrange_charts(self, dashboard: int, charts: Sequence[tuple[int, str, int]]) -> None:
        """Put charts (id, title, width of 12) into one row of the dashboard."""
        row = {"type": "ROW", "id": "ROW-1", "children": [], "meta": {"background": "BACKGROUND_TRANSPARENT"}}
        position: dict[str, Any] = {
            "DASHBOARD_VERSION_KEY": "v2",
            "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
            "GRID_ID": {"type": "GRID", "id": "GRID_ID", "children": ["ROW-1"], "parents": ["ROOT_ID"]},
            "ROW-1": {**row, "parents": ["ROOT_ID", "GRID_ID"]},
        }
        for chart, title, width in charts:
            name = f"CHART-{chart}"
            position["ROW-1"]["children"].append(name)
            position[name] = {
                "type": "CHART",
                "id": name,
                "children": [],
                "parents": ["ROOT_ID", "GRID_ID", "ROW-1"],
                "meta": {"chartId": chart, "sliceName": title, "width": width, "height": 62},
            }
        self._send_request("PUT", f"/api/v1/dashboard/{dashboard}", {"position_json": json.dumps(position)})

    def read_chart_data(
        self, dataset: int, *, columns: Sequence[str], metrics: Sequence[Any], filters: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[str, list[dict[str, Any]]]:
        """Return a chart's SQL and rows. Superset asks the database, not its cache."""
        query = {"columns": columns, "metrics": metrics, "filters": filters, "row_limit": 1000}
        body = {"datasource": {"id": dataset, "type": "table"}, "queries": [query], "force": True}
        found = self._post_json("/api/v1/chart/data", body)["result"][0]
        return found["query"], found["data"]

    def _get_json(self, path: str) -> Any:
        return self._send_request("GET", path, None)

    def _post_json(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._send_request("POST", path, body)

    def _send_request(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        return json.loads(self._open(method, path, data, {"Content-Type": "application/json"}))

    def _open(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> bytes:
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=120) as answer:
                text: bytes = answer.read()
                return text
        except urllib.error.HTTPError as error:
            raise SupersetError(error.read().decode()) from None
