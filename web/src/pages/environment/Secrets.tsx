/** Which secrets and variables a run of the reader would have, and why. No value is ever shown. */
import { useQuery } from "@tanstack/react-query";
import { runSecretsQuery, slugOf, type VersionOf } from "#/api/environments";
import type { RunSecret } from "#/api/types";
import { usePolling } from "#/app/feed";
import { Badge, Mark } from "#/design/Badge";
import { CodeBlock } from "#/design/CodeBlock";
import { EmptyState } from "#/design/EmptyState";
import { PageBody, Section } from "#/design/Section";
import { DataTable } from "#/parts/DataTable";
import { Loaded } from "#/parts/Loaded";
import { useEnvironment } from "./context";
import styles from "./environment.module.css";
import { LogInFirst } from "./LogInFirst";
import { explainRole } from "./rights";
import { WithVersion } from "./WithVersion";
import { text } from "./words";

const words = text.secrets;

export function Secrets() {
  const { user } = useEnvironment();
  if (user === null) return <LogInFirst />;
  return <WithVersion>{(_, of) => <Preview of={of} />}</WithVersion>;
}

function Preview({ of }: { of: VersionOf }) {
  const shown = useEnvironment();
  const refetchInterval = usePolling();
  const query = useQuery({ ...runSecretsQuery(of), refetchInterval });
  return (
    <Loaded query={query}>
      {({ items }) =>
        items.length === 0 ? (
          <EmptyState icon="key" title={words.none}>
            <p>{words.noneHint}</p>
          </EmptyState>
        ) : (
          <PageBody>
            <Section title={words.title} note={words.note} flush>
              <SecretTable items={items} />
            </Section>
            <Section title={words.commands}>
              <CodeBlock
                text={listCommands(slugOf(of), items, explainRole(shown, "write") === null).join("\n")}
              />
            </Section>
          </PageBody>
        )
      }
    </Loaded>
  );
}

/** Who may change the environment links a secret; everybody else passes their own with a run. */
function listCommands(slug: string, items: readonly RunSecret[], mayChange: boolean): string[] {
  const name = items.find((each) => !each.reaches)?.name ?? "NAME";
  return mayChange
    ? [`proctor secret set ${name}`, `proctor secret link ${name} --env ${slug}`]
    : [`proctor eval run ${slug} -m MODEL --hosted --custom-secrets ${name}`];
}

function SecretTable({ items }: { items: readonly RunSecret[] }) {
  return (
    <DataTable
      label={words.title}
      columns={[
        { title: words.name, cell: (each) => <SecretName secret={each} /> },
        { title: words.origin, cell: (each) => (each.origin ? words.origins[each.origin] : "–") },
        { title: words.reaches, cell: (each) => <Reaches reaches={each.reaches} /> },
        { title: words.why, cell: (each) => each.why },
      ]}
      rows={items}
      keyOf={(each) => each.name}
      empty={null}
    />
  );
}

function SecretName({ secret }: { secret: RunSecret }) {
  return (
    <span className={styles.line}>
      <code>{secret.name}</code>
      {secret.declared && (
        <span title={words.declaredHint}>
          <Badge>{words.declared}</Badge>
        </span>
      )}
    </span>
  );
}

const Reaches = ({ reaches }: { reaches: boolean }) =>
  reaches ? (
    <Mark tone="good" icon="checkCircle">
      {words.yes}
    </Mark>
  ) : (
    <Mark tone="warn" icon="ban">
      {words.no}
    </Mark>
  );
