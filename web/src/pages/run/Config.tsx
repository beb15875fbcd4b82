/** The settings of a run: as a command, as TOML, and in full. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { runQuery } from "#/api/runs";
import { CodeBlock } from "#/design/CodeBlock";
import { Facts } from "#/design/Facts";
import { PageBody, Section } from "#/design/Section";
import { Loaded } from "#/parts/Loaded";
import { words } from "#/words";
import styles from "./Overview.module.css";
import { Provenance } from "./Provenance";
import { buildCommand, buildToml, formatSetting, UNSET } from "./settings";

const route = getRouteApi("/runs/$runId");

export function Config() {
  const { runId } = route.useParams();
  const run = useQuery(runQuery(runId));
  const text = words.run.config;
  const list = (values: Readonly<Record<string, unknown>>) =>
    Object.entries(values)
      .filter(([, value]) => formatSetting(value) !== UNSET)
      .map(([name, value]) => ({
        name: <code>{name}</code>,
        value: <code>{formatSetting(value)}</code>,
      }));
  return (
    <Loaded query={run} lines={8}>
      {(info) => (
        <PageBody>
          <div className={styles.columns}>
            <Section title={text.command}>
              <CodeBlock text={buildCommand(info)} label={text.command} />
            </Section>
            <Section title={text.toml}>
              <CodeBlock text={buildToml(info)} label={text.toml} />
            </Section>
          </div>
          <div className={styles.columns}>
            <Section title={text.requested} note={text.requestedNote}>
              <Facts facts={list(info.settings)} />
            </Section>
            <Section title={text.resolved} note={text.resolvedNote}>
              <Facts facts={list(info.resolved)} />
            </Section>
          </div>
          {info.origin && (
            <Section title={text.recipe}>
              <CodeBlock text={JSON.stringify(info.origin.recipe, null, 2)} label={text.recipe} />
            </Section>
          )}
          <Provenance run={info} isConfig />
        </PageBody>
      )}
    </Loaded>
  );
}
