/** The rewards of a task's rollouts as dots on a line, and their mean as a tick; the figures stand beside it. */
import type { TaskGroup } from "#/api/types";
import type { Domain } from "#/parts/Score";
import styles from "./samples.module.css";

const MOST_DOTS = 60;

export function SpreadPlot({ group, domain }: { group: TaskGroup; domain: Domain }) {
  const [low, high] = domain;
  const place = (value: number) => `${4 + (92 * (value - low)) / (high - low || 1)}%`;
  const rewards = group.entries
    .flatMap(({ reward }) => (reward === null ? [] : [reward]))
    .slice(0, MOST_DOTS);
  if (group.mean === null) return null;
  return (
    <svg className={styles.plot} aria-hidden="true" focusable="false">
      <line className={styles.axis} x1={place(low)} x2={place(high)} y1="50%" y2="50%" />
      {rewards.map((reward, index) => (
        <circle key={index} className={styles.dot} cx={place(reward)} cy="50%" r="3.5" />
      ))}
      <line className={styles.mean} x1={place(group.mean)} x2={place(group.mean)} y1="15%" y2="85%" />
    </svg>
  );
}
