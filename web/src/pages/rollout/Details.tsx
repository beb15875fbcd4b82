/** What stands beside the conversation: reward, errors, calls, files, and everything else that was stored. */
import type { RolloutAddress } from "#/api/rollouts";
import type { RolloutView } from "#/api/types";
import { words } from "#/words";
import { About, Value } from "./About";
import { Calls } from "./Calls";
import { ChangedFiles } from "./ChangedFiles";
import styles from "./Details.module.css";
import { Errors } from "./Errors";
import { Reward } from "./Reward";
import { RolloutComments } from "./RolloutComments";

type Props = { address: RolloutAddress; view: RolloutView; onStep: (index: number) => void };

export function Details({ address, view, onStep }: Props) {
  return (
    <aside
      className={styles.details}
      aria-label={words.rollout.details.label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
      tabIndex={0}
    >
      <Errors view={view} />
      <Reward view={view} />
      <RolloutComments address={address} view={view} />
      <Value title={words.rollout.details.answer} value={view.answer} />
      <Calls view={view} onStep={onStep} />
      <ChangedFiles address={address} files={view.files} />
      <About view={view} />
    </aside>
  );
}

export function Part(props: { title: string; note?: React.ReactNode; children: React.ReactNode }) {
  return (
    <section className={styles.part}>
      <h2 className={styles.title}>
        {props.title}
        {props.note && <span className={styles.note}>{props.note}</span>}
      </h2>
      {props.children}
    </section>
  );
}
