/** The log of a run as a terminal shows it: live, read backwards, searched, every line with an address. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useLocation } from "@tanstack/react-router";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { fetchLog } from "#/api/log";
import { runQuery } from "#/api/runs";
import type { LogQuery } from "#/api/types";
import { announce } from "#/app/announcer";
import { useKeys } from "#/app/keys";
import { LoadError } from "#/app/PageError";
import { changeSearch, type SearchChange } from "#/app/search";
import { Button } from "#/design/Button";
import { EmptyState } from "#/design/EmptyState";
import { Skeleton } from "#/design/Skeleton";
import { LineView, type LineViewHandle } from "#/parts/LineView";
import { words } from "#/words";
import { LogBar } from "./LogBar";
import { LogText, toneOfLevel } from "./LogText";
import styles from "./logs.module.css";
import { findRow, hasLine, listRows } from "./logWindow";
import { buildLogFilter, type LogFilter, type LogSearch, nameLine, readLine } from "./search";
import { useLogWindow } from "./useLogWindow";

const route = getRouteApi("/runs/$runId/logs");
const text = words.run.logs;
const NEAR_EDGE = 100;

export function Logs() {
  const { runId } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const line = useLocation({ select: (location) => readLine(location.hash) });
  const filter = buildLogFilter(search);
  const [start, setStart] = useState(line);
  const [wrap, setWrap] = useState(true);
  const log = useLogWindow(runId, filter, start);
  const rows = listRows(log.window.entries);
  const view = useRef<LineViewHandle>(null);
  const go = (change: SearchChange<LogSearch>, to: number | undefined) =>
    void navigate({
      search: (before: LogSearch) => changeSearch(before, change),
      hash: to === undefined ? "" : nameLine(to),
      replace: true,
      hashScrollIntoView: false,
      resetScroll: false, // the log scrolls by itself
    });
  const toEnd = () => {
    setStart(undefined);
    go({}, undefined);
    view.current?.scrollTo(rows.length - 1, "end");
  };
  useShownLine({ line, log, rows, view, start, onMissing: setStart });
  useLineKeys(runId, search, line, (found) => go({}, found));
  return (
    <div className={styles.logs}>
      <LogBar
        search={search}
        wrap={wrap}
        onWrap={setWrap}
        onChange={(change) => go(change, line)}
        state={<LogState log={log} onEnd={toEnd} />}
      />
      <LogBody runId={runId} log={log} isFiltered={Boolean(search.q || search.level)}>
        <LineView
          key={JSON.stringify(filter)}
          handle={view}
          label={text.label}
          count={rows.length}
          startAt={line === undefined ? rows.length : findRow(rows, line)}
          wrap={wrap}
          keyAt={(index) => `${rows[index]?.entry.number}.${rows[index]?.part}`}
          onRange={(first, last) => {
            if (first < NEAR_EDGE && log.window.moreBefore) void log.grow("before");
            if (last > rows.length - NEAR_EDGE && log.window.moreAfter) void log.grow("after");
          }}
          lineAt={(index) => {
            const row = rows[index];
            if (!row) return { content: "" };
            return {
              label: row.part === 0 ? <LineNumber number={row.entry.number} /> : "",
              content: <LogText row={row} search={search.q ?? ""} />,
              tone: toneOfLevel(row.entry.level),
              isMarked: row.entry.number === line,
            };
          }}
        />
      </LogBody>
    </div>
  );
}

type Log = ReturnType<typeof useLogWindow>;
type Rows = ReturnType<typeof listRows>;

/** Leads to the line among all others, without the filters it was found by. */
function LineNumber({ number }: { number: number }) {
  return (
    <Link
      from="/runs/$runId/logs"
      to="."
      search={{}}
      hash={nameLine(number)}
      replace
      hashScrollIntoView={false}
      resetScroll={false}
      aria-label={text.lineLink(number)}
      tabIndex={-1} // keys move from line to line; a log would have hundreds of stops
      className={styles.number}
    >
      {number}
    </Link>
  );
}

function LogState({ log, onEnd }: { log: Log; onEnd: () => void }) {
  const { moreAfter, isComplete } = log.window;
  return (
    <>
      {log.hasFailed && <span className={styles.failed}>{text.loadFailed}</span>}
      {!isComplete && !moreAfter && <span className={styles.state}>{text.following}</span>}
      <Button look="quiet" icon="arrowDown" onClick={onEnd}>
        {text.toEnd}
      </Button>
    </>
  );
}

type BodyProps = { runId: string; log: Log; isFiltered: boolean; children: React.ReactNode };

function LogBody({ runId, log, isFiltered, children }: BodyProps) {
  const run = useQuery(runQuery(runId));
  if (log.error) return <LoadError error={log.error} onRetry={() => void log.refetch()} />;
  if (log.isLoading) return <Skeleton lines={8} />;
  if (log.window.entries.length > 0) return children;
  if (isFiltered) return <EmptyState icon="filter" title={text.noneMatch} />;
  return (
    <EmptyState icon="terminal" title={run.data && run.data.ended_at === null ? text.noneYet : text.none} />
  );
}

type Shown = {
  line: number | undefined;
  log: Log;
  rows: Rows;
  view: React.RefObject<LineViewHandle | null>;
  start: number | undefined;
  onMissing: (line: number) => void;
};

/** Scrolls to the line of the address, or to the end, when another window or another address is there. */
function useShownLine({ line, log, rows, view, start, onMissing }: Shown): void {
  const isThere = log.window.entries.length > 0;
  const show = useEffectEvent(() => {
    if (!isThere) return;
    if (line === undefined) {
      if (start === undefined) view.current?.scrollTo(rows.length - 1, "end");
    } else if (hasLine(log.window, line) || start === line) view.current?.scrollTo(findRow(rows, line));
    else onMissing(line);
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only these scroll, not lines that are added
  useEffect(() => show(), [line, isThere, log.first]);
}

/**
 * j and k go to the next and the previous line that is shown; n and N to one that matches or, without a search, to
 * an error. They ask the server, so they find lines wherever in the log these are.
 */
function useLineKeys(
  runId: string,
  search: LogSearch,
  line: number | undefined,
  onFound: (line: number) => void,
): void {
  const shown = buildLogFilter(search);
  const wanted: LogFilter = search.q ? shown : { level: ["ERROR"] };
  const after = { after: line ?? 0 };
  const before = line === undefined ? {} : { before: line };
  const find = async (filter: LogFilter, edge: LogQuery) => {
    try {
      const { items } = await fetchLog(runId, { ...filter, ...edge, limit: 1 });
      const found = items[0]?.number;
      if (found === undefined) announce(text.noneFound);
      else onFound(found);
    } catch {
      announce(text.loadFailed);
    }
  };
  useKeys([
    { keys: "j", label: text.nextLine, run: () => void find(shown, after) },
    { keys: "k", label: text.previousLine, run: () => void find(shown, before) },
    { keys: "n", label: text.nextError, run: () => void find(wanted, after) },
    { keys: "N", label: text.previousError, run: () => void find(wanted, before) },
  ]);
}
