/** A long text in the line view, with its own search: the browser's would only see the visible lines. */
import { useDeferredValue, useMemo, useRef, useState } from "react";
import { useKeys } from "#/app/keys";
import { IconButton } from "#/design/Button";
import { TextField } from "#/design/TextField";
import { words } from "#/words";
import { showControls } from "./ansiText";
import { LineView, type LineViewHandle, Marked } from "./LineView";
import { findRows, splitRows } from "./lines";
import styles from "./TextView.module.css";

/** About so many characters fit before a line wraps. */
const WRAP_WIDTH = 100;

export function TextView({
  text,
  label,
  actions,
  wrap = false,
}: {
  text: string;
  label: string;
  actions?: React.ReactNode;
  wrap?: boolean;
}) {
  const rows = useMemo(() => splitRows(text), [text]);
  const [search, setSearch] = useState("");
  const wanted = useDeferredValue(search);
  const found = useMemo(() => findRows(rows, wanted), [rows, wanted]);
  const [at, setAt] = useState(0);
  const view = useRef<LineViewHandle>(null);
  const go = (step: number) => {
    if (found.length === 0) return;
    const next = (at + step + found.length) % found.length;
    setAt(next);
    view.current?.scrollTo(found[next] ?? 0);
  };
  useKeys([
    { keys: "n", label: words.lines.next, run: () => go(1) },
    { keys: "N", label: words.lines.previous, run: () => go(-1) },
  ]);
  return (
    <div className={styles.view}>
      <div className={styles.bar}>
        <TextField
          label={words.lines.find}
          hideLabel
          icon="search"
          type="search"
          placeholder={words.lines.find}
          value={search}
          onChange={(event) => {
            setSearch(event.target.value);
            setAt(-1);
          }}
          onKeyDown={(event) => event.key === "Enter" && go(event.shiftKey ? -1 : 1)}
        />
        {search && (
          <span className={styles.count}>{words.lines.matches(Math.max(0, at) + 1, found.length)}</span>
        )}
        <IconButton label={words.lines.previous} icon="arrowUp" onClick={() => go(-1)} />
        <IconButton label={words.lines.next} icon="arrowDown" onClick={() => go(1)} />
        <div className={styles.actions}>{actions}</div>
      </div>
      <LineView
        handle={view}
        label={label}
        wrap={wrap}
        linesOf={(index) => (wrap ? Math.ceil(rows.at(index).text.length / WRAP_WIDTH) : 1)}
        count={rows.count}
        lineAt={(index) => {
          const row = rows.at(index);
          return {
            label: row.isContinued ? "↪" : row.number,
            content: <Marked text={showControls(row.text)} search={wanted} />,
            isMarked: found[at] === index,
          };
        }}
      />
    </div>
  );
}
