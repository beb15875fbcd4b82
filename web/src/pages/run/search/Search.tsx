/** Finds a text in all transcripts of a run; each place leads to its step. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import type { SearchHit } from "#/api/types";
import { LoadError } from "#/app/PageError";
import { Button } from "#/design/Button";
import { EmptyState } from "#/design/EmptyState";
import { showControls } from "#/parts/ansiText";
import { FilterBar } from "#/parts/FilterBar";
import { type Column, VirtualTable } from "#/parts/VirtualTable";
import { plural } from "#/words";
import styles from "./Search.module.css";
import { MOST_HITS, useSearch } from "./useSearch";
import { text } from "./words";

const route = getRouteApi("/runs/$runId/search");

export function Search() {
  const { runId } = route.useParams();
  const { q = "" } = route.useSearch();
  const change = route.useNavigate();
  const navigate = useNavigate();
  const found = useSearch(runId, q);
  return (
    <div className={styles.search}>
      <FilterBar
        search={{
          text: q,
          placeholder: text.field,
          onChange: (next) => void change({ search: next ? { q: next } : {}, replace: true }),
        }}
      >
        {found.isSearching && (
          <Button small onClick={found.stop}>
            {text.stop}
          </Button>
        )}
      </FilterBar>
      <p className={styles.count} role="status">
        {describe(q, found)}
      </p>
      {found.error && <LoadError error={found.error} onRetry={found.retry} />}
      {q !== "" && !found.error && (
        <VirtualTable
          label={text.label}
          columns={buildColumns(runId)}
          count={found.hits.length}
          rowAt={(index) => found.hits[index]}
          keyOf={(hit) => `${hit.key}/${hit.number}/${hit.event ?? "-"}`}
          onOpen={(hit) => void navigate(locate(runId, hit))}
          resetKey={q}
          empty={
            found.isSearching ? null : (
              <EmptyState icon="search" title={text.none}>
                <p>{text.noneHint(q)}</p>
              </EmptyState>
            )
          }
        />
      )}
    </div>
  );
}

function describe(q: string, { hits, isSearching }: ReturnType<typeof useSearch>): string {
  if (q === "") return text.hint;
  if (hits.length === 0) return isSearching ? text.searching : "";
  return text.found(plural(hits.length, "place"), !isSearching, hits.length >= MOST_HITS);
}

const locate = (runId: string, hit: SearchHit) =>
  ({
    to: "/runs/$runId/t/$taskKey/$number",
    params: { runId, taskKey: hit.key, number: String(hit.number) },
    hash: hit.event === null ? "" : `m${hit.event}`,
  }) as const;

const buildColumns = (runId: string): Column<SearchHit>[] => [
  {
    id: "task",
    title: text.task,
    width: 10,
    grow: 1,
    cell: (hit) => (
      <Link {...locate(runId, hit)} className={styles.task}>
        {showControls(hit.task)}
      </Link>
    ),
  },
  { id: "number", title: text.number, width: 4, isNumber: true, cell: (hit) => hit.number },
  {
    id: "step",
    title: text.step,
    width: 4,
    isNumber: true,
    cell: (hit) => hit.event ?? <span title={text.elsewhere}>–</span>,
  },
  { id: "found", title: text.passage, width: 16, grow: 5, cell: (hit) => <Passage hit={hit} /> },
];

const Passage = ({ hit }: { hit: SearchHit }) => (
  <span className={styles.passage}>
    {showControls(hit.before)}
    <mark>{showControls(hit.match)}</mark>
    {showControls(hit.after)}
  </span>
);
