"""What the token of a host's stand-in may do: everything for its own attempt, and nothing else."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, select

from proctor.server.db.tables import versions
from tests.server.runs import making
from tests.server.serving import Api, serving, settings_in

CRASH = {"cause": {"code": "crashed", "message": "Its node died."}, "blameless": True}


def read_wheel_hash(connection: Connection) -> str:
    return str(connection.execute(select(versions.c.wheel_sha256)).scalars().first())


def test_a_stand_in_speaks_for_its_own_attempt_and_only_while_that_lasts(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as served:
        served.user("ada")
        database = served.platform.database
        database.write_now(making.environment)
        run_id, other = database.write_now(making.run), database.write_now(making.run)
        host = Api(served.url, served.root.post("/hosts", {"name": "cluster"})["token"], "k" * 32)
        claim = {"host": "cluster-1", "delegate": True}
        first = host.post("/hosts/claims", claim)
        assert first["run_id"] == run_id
        node = Api(served.url, first["delegate_token"])
        query = "?host=node&attempt=1"

        assert node.post(f"/hosts/runs/{run_id}/heartbeat{query}") == {"stop": False, "lost": False}
        assert node("POST", f"/hosts/runs/{other}/heartbeat{query}").status == 403
        assert node("POST", f"/hosts/runs/{run_id}/heartbeat?host=node&attempt=2").status == 403
        assert node("POST", f"/hosts/runs/{other}/lost{query}", CRASH).status == 403
        assert node("POST", "/hosts/claims", claim).status == 403
        assert node("POST", "/hosts/attempts", {"attempts": []}).status == 403
        assert node("POST", "/runner/reports", {"batch": 1}).status == 403
        assert node("GET", "/runs").status == 403
        assert node.post("/hosts/leftovers", {"runs": ["run-gone"]}) == {"runs": ["run-gone"]}
        assert node("GET", f"/hosts/wheels/{'0' * 64}").status == 404

        placed = [{"run_id": run_id, "attempt": 1}, {"run_id": "run-of-another-server", "attempt": 1}]
        assert host.post("/hosts/attempts", {"attempts": placed}) == {"attempts": []}
        assert node("POST", f"/hosts/runs/{run_id}/lost{query}", CRASH).status == 204
        assert node("POST", f"/hosts/runs/{run_id}/heartbeat{query}").code == "run_over"
        assert host.post("/hosts/attempts", {"attempts": placed}) == {"attempts": placed[:1]}
        second = [host.post("/hosts/claims", claim) for _ in range(2)]
        assert (run_id, 2) in [(each["run_id"], each["attempt"]) for each in second]
        assert host.post("/hosts/claims", {"host": "cluster-1"}) == ""
