/** A unified diff: what was added and removed, by sign and by colour. */
import { useMemo } from "react";
import type { Tone } from "#/design/Badge";
import { showControls } from "#/parts/ansiText";
import { LineView } from "#/parts/LineView";
import { splitRows } from "#/parts/lines";
import styles from "./FileDiff.module.css";

const TONES: Record<string, Tone> = { "+": "good", "-": "bad", "@": "info" };

export function FileDiff(props: { diff: string; label: string; actions: React.ReactNode }) {
  const rows = useMemo(() => splitRows(props.diff), [props.diff]);
  return (
    <div className={styles.view}>
      <div className={styles.actions}>{props.actions}</div>
      <LineView
        label={props.label}
        count={rows.count}
        lineAt={(index) => {
          const { text } = rows.at(index);
          const isHeader = text.startsWith("+++") || text.startsWith("---");
          return { content: showControls(text), tone: isHeader ? "neutral" : TONES[text[0] ?? ""] };
        }}
      />
    </div>
  );
}
