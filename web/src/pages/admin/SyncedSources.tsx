/** Every git repository that the server takes rollouts from, and how its last sync went. */
import { useQuery } from "@tanstack/react-query";
import { allSourcesQuery } from "#/api/admin";
import type { SourceInfo } from "#/api/types";
import { Mark } from "#/design/Badge";
import { Section } from "#/design/Section";
import { DataTable } from "#/parts/DataTable";
import { When } from "#/parts/Figures";
import { Loaded } from "#/parts/Loaded";
import styles from "../settings/forms.module.css";
import { text } from "./words";

const words = text.sources;
const SHORT = 7;

export function SyncedSources() {
  const sources = useQuery(allSourcesQuery);
  return (
    <Section title={words.title} note={words.note} flush>
      <Loaded query={sources}>
        {(found) => (
          <DataTable
            label={words.title}
            columns={[
              {
                title: words.source,
                cell: (source) => (
                  <span className={styles.name}>
                    {source.owner}/{source.name}
                  </span>
                ),
              },
              { title: words.address, cell: (source) => source.url },
              {
                title: words.commit,
                cell: (source) =>
                  source.commit_sha && (
                    <>
                      <code>{source.commit_sha.slice(0, SHORT)}</code>{" "}
                      <span className={styles.faint}>
                        {source.branch} · {source.subject}
                      </span>
                    </>
                  ),
              },
              {
                title: words.synced,
                cell: (source) => (source.synced_at === null ? words.never : <When at={source.synced_at} />),
              },
              { title: words.state, cell: (source) => <State source={source} /> },
            ]}
            rows={found}
            keyOf={(source) => source.id}
            empty={words.none}
          />
        )}
      </Loaded>
    </Section>
  );
}

function State({ source }: { source: SourceInfo }) {
  if (source.problem)
    return (
      <>
        <Mark tone="bad" icon="xCircle">
          {words.failed}
        </Mark>{" "}
        <span className={styles.faint}>{source.problem}</span>
      </>
    );
  if (source.synced_at === null) return <Mark icon="clock">{words.unsynced}</Mark>;
  return (
    <Mark tone="good" icon="checkCircle">
      {words.fine}
    </Mark>
  );
}
