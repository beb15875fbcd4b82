/** What one comparison came to: the verdict in a line, and the figures that it rests on. */
import type { ReactNode } from "react";
import type { Comparison } from "#/api/types";
import { Badge } from "#/design/Badge";
import { formatCount, formatPercent, formatScore } from "#/parts/format";
import { nameIntervalKind, words } from "#/words";
import { formatDifference, formatDifferences, formatP, VERDICT_LOOKS } from "./pairs";
import styles from "./VerdictCard.module.css";
import { WinBar } from "./WinBar";

const text = words.compare;

type Props = { comparison: Comparison; name: string; base: string };

export function VerdictCard({ comparison, name, base }: Props) {
  const { reward, verdict, pairing, differing_tasks: differing } = comparison;
  const { interval } = reward;
  return (
    <section className={styles.card} aria-label={`${name} ${text.against(base)}`}>
      <header className={styles.head}>
        <Badge {...VERDICT_LOOKS[verdict]}>{text.verdict[verdict]}</Badge>
        <h2 className={styles.title}>
          {name} <span className={styles.against}>{text.against(base)}</span>
        </h2>
        <p className={styles.line}>{comparison.text}</p>
      </header>
      <div className={styles.figures}>
        <Figure
          name={verdict === "too_little_data" ? text.noVerdict : text.difference}
          large
          note={
            interval
              ? text.paired(formatPercent(interval.level), nameIntervalKind(interval.kind))
              : words.score.noInterval
          }
        >
          {formatDifference(reward.difference)}
          {interval && <span className={styles.range}>{formatDifferences(interval.low, interval.high)}</span>}
        </Figure>
        <Figure name={text.wins} note={<WinBar measure={reward} />}>
          {formatCount(reward.wins)} / {formatCount(reward.ties)} / {formatCount(reward.losses)}
        </Figure>
        <Figure name={text.smallest} note={text.smallestNote(formatPercent(comparison.power))}>
          {formatScore(reward.smallest_detectable)}
        </Figure>
        <Figure
          name={text.p}
          note={
            reward.tests > 1
              ? `${text.tests[reward.test]}, ${text.adjusted(reward.tests)}`
              : text.tests[reward.test]
          }
        >
          {formatP(reward.p_adjusted)}
        </Figure>
        <Figure name={text.correlation} note={text.correlationNote}>
          {formatScore(reward.correlation)}
        </Figure>
        <Figure name={text.pairs} note={text.pairsNote(differing.lost, differing.won)}>
          {formatCount(pairing.paired)}
        </Figure>
      </div>
    </section>
  );
}

function Figure(props: { name: string; note: ReactNode; children: ReactNode; large?: boolean }) {
  return (
    <div className={styles.figure}>
      <span className={styles.name}>{props.name}</span>
      <span className={props.large ? styles.large : styles.value}>{props.children}</span>
      <span className={styles.note}>{props.note}</span>
    </div>
  );
}
