/** Names and values, as a description list in columns. */
import type { ReactNode } from "react";
import styles from "./Facts.module.css";

export type Fact = { name: ReactNode; value: ReactNode };

export function Facts({ facts }: { facts: readonly (Fact | null | false)[] }) {
  return (
    <dl className={styles.list}>
      {facts
        .filter((fact): fact is Fact => Boolean(fact))
        .map((fact, index) => (
          <div key={index} className={styles.pair}>
            <dt className={styles.name}>{fact.name}</dt>
            <dd className={styles.value}>{fact.value}</dd>
          </div>
        ))}
    </dl>
  );
}
