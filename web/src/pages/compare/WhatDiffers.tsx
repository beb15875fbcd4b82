/** What else is not the same: settings, and the tasks that could not be paired. */
import type { Comparison } from "#/api/types";
import { Facts } from "#/design/Facts";
import { Section } from "#/design/Section";
import { words } from "#/words";
import type { ComparedPair } from "./pairs";
import styles from "./WhatDiffers.module.css";

const text = words.compare;

export function WhatDiffers({ pairs, base }: { pairs: readonly ComparedPair[]; base: string }) {
  return (
    <Section title={text.whatDiffers}>
      <div className={styles.pairs}>
        {pairs.map(({ run, name, comparison }) => (
          <div key={run} className={styles.pair}>
            {pairs.length > 1 && <h3>{name}</h3>}
            <SettingTable comparison={comparison} base={base} name={name} />
            <Unmatched comparison={comparison} name={name} />
          </div>
        ))}
      </div>
    </Section>
  );
}

type Props = { comparison: Comparison; name: string };

function SettingTable({ comparison, name, base }: Props & { base: string }) {
  const { settings } = comparison;
  if (settings.length === 0) return <p className={styles.none}>{text.noSettings}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section className={styles.scroll} aria-label={text.settings} tabIndex={0}>
      <table className={styles.table} aria-label={text.settings}>
        <thead>
          <tr>
            <th scope="col">{text.setting}</th>
            <th scope="col">{base}</th>
            <th scope="col">{name}</th>
          </tr>
        </thead>
        <tbody>
          {settings.map((setting) => (
            <tr key={setting.name}>
              <th scope="row">
                <code>{setting.name}</code>
              </th>
              <td>{formatValues(setting.baseline)}</td>
              <td>{formatValues(setting.candidate)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const formatValues = (values: readonly unknown[]) => (
  <code>{values.map((value) => (value == null ? text.unset : formatValue(value))).join(", ")}</code>
);

const formatValue = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function Unmatched({ comparison, name }: Props) {
  const { only_baseline, only_candidate, unscored, paired_by_id } = comparison.pairing;
  const lists = [
    { title: text.onlyBase, tasks: only_baseline },
    { title: text.onlyHere(name), tasks: only_candidate },
    { title: text.unscored, tasks: unscored },
  ].filter(({ tasks }) => tasks.count > 0);
  const facts = [
    ...lists.map(({ title, tasks }) => ({ name: title, value: <TaskNames tasks={tasks} /> })),
    paired_by_id > 0 && { name: text.byId, value: text.byIdNote(paired_by_id) },
  ];
  return lists.length === 0 && paired_by_id === 0 ? (
    <p className={styles.none}>{text.noUnmatched}</p>
  ) : (
    <Facts facts={facts} />
  );
}

function TaskNames({ tasks }: { tasks: { count: number; named: readonly (string | number)[] } }) {
  const others = tasks.count - tasks.named.length;
  return (
    <>
      <code>{tasks.named.join(", ")}</code> {others > 0 && text.more(others)}
    </>
  );
}
