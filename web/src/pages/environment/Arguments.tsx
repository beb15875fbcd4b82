/** What an environment takes, how it is scored and what a task of it looks like, as its check found out. */
import type { ArgumentInfo, Version, VersionDetails } from "#/api/types";
import { Badge } from "#/design/Badge";
import { EmptyState } from "#/design/EmptyState";
import { type Fact, Facts } from "#/design/Facts";
import { PageBody, Section } from "#/design/Section";
import { showControls } from "#/parts/ansiText";
import { formatNumber } from "#/parts/format";
import styles from "./environment.module.css";
import { WithVersion } from "./WithVersion";
import { text } from "./words";

const words = text.arguments;

export function Arguments() {
  return <WithVersion>{(version) => <Known version={version} />}</WithVersion>;
}

function Known({ version }: { version: Version }) {
  const details = version.details as VersionDetails | null;
  if (!details)
    return (
      <EmptyState title={words.unknown}>
        <p>{words.unknownWhy[version.check.status]}</p>
      </EmptyState>
    );
  return (
    <PageBody>
      <Section title={words.title} note={words.note} flush>
        <ArgumentTable details={details} />
      </Section>
      <Played details={details} />
      {details.rewards.length > 0 && <Rewards details={details} />}
      {details.tools.length > 0 && (
        <Section title={words.tools}>
          <Facts
            facts={details.tools.map((tool) => ({
              name: <code>{showControls(tool.name)}</code>,
              value: showControls(tool.description),
            }))}
          />
        </Section>
      )}
      {details.example && <Example example={details.example} />}
    </PageBody>
  );
}

function ArgumentTable({ details }: { details: VersionDetails }) {
  const note = details.takes_any && <p className={styles.note}>{words.any}</p>;
  if (details.arguments.length === 0) return note || <p className={styles.note}>{words.none}.</p>;
  return (
    <>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">{words.name}</th>
            <th scope="col">{words.type}</th>
            <th scope="col">{words.default}</th>
          </tr>
        </thead>
        <tbody>
          {details.arguments.map((argument) => (
            <ArgumentRow key={argument.name} argument={argument} />
          ))}
        </tbody>
      </table>
      {note}
    </>
  );
}

const ArgumentRow = ({ argument }: { argument: ArgumentInfo }) => (
  <tr>
    <th scope="row">
      <code>{showControls(argument.name)}</code>
    </th>
    <td>
      {argument.type ? <code>{showControls(argument.type)}</code> : <span className={styles.faint}>–</span>}
    </td>
    <td>
      {argument.default == null ? (
        <Badge tone="warn">{words.required}</Badge>
      ) : (
        <code>{showControls(argument.default)}</code>
      )}
    </td>
  </tr>
);

function Played({ details }: { details: VersionDetails }) {
  const facts: Fact[] = [
    ...(details.kind ? [{ name: words.kind, value: <code>{showControls(details.kind)}</code> }] : []),
    ...(details.max_turns == null ? [] : [{ name: words.maxTurns, value: details.max_turns }]),
    ...(details.pass_threshold == null
      ? []
      : [{ name: words.passThreshold, value: formatNumber(details.pass_threshold, 2) }]),
    ...Object.entries(details.defaults).map(([name, value]) => ({
      name: <code>{showControls(name)}</code>,
      value: <code>{showControls(JSON.stringify(value))}</code>,
    })),
  ];
  if (facts.length === 0) return null;
  return (
    <Section
      title={words.played}
      note={Object.keys(details.defaults).length > 0 ? words.defaultsNote : undefined}
    >
      <Facts facts={facts} />
    </Section>
  );
}

const Rewards = ({ details }: { details: VersionDetails }) => (
  <Section title={words.rewards} flush>
    <table className={styles.table}>
      <thead>
        <tr>
          <th scope="col">{words.name}</th>
          <th scope="col" className={styles.number}>
            {words.weight}
          </th>
        </tr>
      </thead>
      <tbody>
        {details.rewards.map((reward, index) => (
          <tr key={index}>
            <th scope="row">
              <code>{showControls(reward.name)}</code>{" "}
              {reward.is_grouped && <span className={styles.faint}>{words.grouped}</span>}
            </th>
            <td className={styles.number}>{reward.weight == null ? "–" : formatNumber(reward.weight, 2)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </Section>
);

const Example = ({ example }: { example: NonNullable<VersionDetails["example"]> }) => (
  <Section title={words.example} note={example.is_cut ? words.exampleCut : undefined}>
    <div className={styles.stack}>
      {example.prompt.map((message, index) => (
        <div key={index} className={styles.turn}>
          <span className={styles.role}>{showControls(message.role)}</span>
          {showControls(message.text)}
        </div>
      ))}
      {example.answer !== "" && (
        <div className={styles.turn}>
          <span className={styles.role}>{words.answer}</span>
          {showControls(example.answer)}
        </div>
      )}
    </div>
  </Section>
);
