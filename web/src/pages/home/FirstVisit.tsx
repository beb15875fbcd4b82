/** The start page of somebody who has no runs: the commands that fill it, and an evaluation to look at. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import { RUNS_KEY } from "#/api/runs";
import { sessionQuery } from "#/api/session";
import type { RunInfo } from "#/api/types";
import { EmptyState } from "#/design/EmptyState";
import { Problem } from "#/parts/Problem";
import { RefusableButton } from "#/parts/RefusableButton";
import { NoRuns } from "../runs/NoRuns";
import styles from "./HomePage.module.css";
import { text } from "./words";

const ASK_AGAIN_MS = 3_000;

export function FirstVisit() {
  const { data: session } = useQuery(sessionQuery);
  if (!session?.user) return <NoRuns isFiltered={false} />;
  return (
    <EmptyState icon="play" title={text.title} commands={text.commands(location.origin)} action={<Example />}>
      <p>{text.hint}</p>
    </EmptyState>
  );
}

function Example() {
  const navigate = useNavigate();
  const example = useQuery({
    queryKey: ["example"],
    queryFn: ({ signal }) => read(api.GET("/api/v1/example", { signal })),
    // The server's own host takes a moment to start.
    refetchInterval: ({ state }) => (state.data?.problem ? ASK_AGAIN_MS : false),
    meta: { quiet: true },
  });
  const start = useChange<void, RunInfo>({
    send: (_, key) => read(api.POST("/api/v1/example", { params: { header: { "Idempotency-Key": key } } })),
    refresh: [RUNS_KEY],
    onDone: (run) => void navigate({ to: "/runs", search: { new: run.id } }),
  });
  if (!example.data) return null;
  const { problem, rollouts, environment } = example.data;
  return (
    <div className={styles.example}>
      <p>{text.or}</p>
      <RefusableButton
        look="primary"
        icon="play"
        reason={problem || null}
        disabled={start.isBusy}
        onClick={() => start.submit()}
      >
        {start.isBusy ? text.starting : text.example}
      </RefusableButton>
      <p className={styles.hint}>{problem || text.exampleHint(rollouts, environment)}</p>
      <Problem error={start.error} />
    </div>
  );
}
