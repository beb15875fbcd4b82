/** A reward, with the shape that says whether the rollout passed. */
import { Hidden } from "#/design/Hidden";
import { Icon } from "#/design/Icon";
import { formatScore } from "#/parts/format";
import { words } from "#/words";
import styles from "./samples.module.css";

export function Reward({ reward, threshold }: { reward: number | null; threshold: number }) {
  if (reward === null) return <span className={styles.none}>–</span>;
  const passed = reward >= threshold;
  return (
    <span className={styles.reward}>
      <span className={passed ? styles.pass : styles.fail}>
        <Icon name={passed ? "check" : "close"} size={12} />
        <Hidden>{passed ? words.run.samples.passed : words.run.samples.notPassed}</Hidden>
      </span>
      <span className={styles.figure}>{formatScore(reward)}</span>
    </span>
  );
}
