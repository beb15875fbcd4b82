/** What stands in place of runs: the command that makes the first one, or that the filters leave none. */
import { EmptyState } from "#/design/EmptyState";
import { words } from "#/words";

export function NoRuns({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <EmptyState icon="filter" title={words.runs.noneMatch} />;
  return (
    <EmptyState title={words.runs.none} commands={words.runs.firstCommands(location.origin)}>
      <p>{words.runs.noneHint}</p>
    </EmptyState>
  );
}
