/** Where a run was played: on the server, elsewhere, or submitted from a repository. */
import type { RunInfo } from "#/api/types";
import { words } from "#/words";

export const nameRunKind = (run: Pick<RunInfo, "kind" | "origin">): string =>
  run.origin ? words.kind.submitted : words.kind[run.kind];

export const RunKind = ({ run }: { run: Pick<RunInfo, "kind" | "origin"> }) => (
  <span>{nameRunKind(run)}</span>
);
