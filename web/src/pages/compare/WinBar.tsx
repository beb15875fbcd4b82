/** Tasks won, the same and lost, as one bar. */
import type { ComparedMeasure } from "#/api/types";
import { formatCount } from "#/parts/format";
import { words } from "#/words";
import styles from "./WinBar.module.css";

export function WinBar({ measure }: { measure: ComparedMeasure }) {
  const { wins, ties, losses } = measure;
  const all = Math.max(1, wins + ties + losses);
  const parts = [
    { className: styles.won, share: wins / all },
    { className: styles.same, share: ties / all },
    { className: styles.lost, share: losses / all },
  ];
  let from = 0;
  return (
    <svg
      className={styles.bar}
      role="img"
      aria-label={words.compare.winsLabel(formatCount(wins), formatCount(ties), formatCount(losses))}
    >
      <title>{words.compare.winsNote}</title>
      {parts.map(({ className, share }, index) => {
        const left = from;
        from += share;
        return (
          share > 0 && (
            <rect
              key={index}
              className={className}
              x={`${100 * left}%`}
              width={`${100 * share}%`}
              height="100%"
            />
          )
        );
      })}
    </svg>
  );
}
