/** The last syncs of a source, each with its log. */
import { useQuery } from "@tanstack/react-query";
import { type SourceSync, sourceSyncsQuery } from "#/api/sources";
import { CodeBlock } from "#/design/CodeBlock";
import { Section } from "#/design/Section";
import { Elapsed, When } from "#/parts/Figures";
import { Loaded } from "#/parts/Loaded";
import { SyncState } from "./SourceState";
import styles from "./sources.module.css";
import { text } from "./words";

export function Syncs({ sourceId }: { sourceId: string }) {
  const syncs = useQuery(sourceSyncsQuery(sourceId));
  return (
    <Section title={text.syncs.title} flush>
      <Loaded query={syncs}>
        {(found) =>
          found.length === 0 ? (
            <p className={styles.note}>{text.syncs.none}</p>
          ) : (
            <div className={styles.syncs}>
              {found.map((sync, index) => (
                <SyncEntry key={sync.id} sync={sync} isOpen={index === 0 && sync.status !== "succeeded"} />
              ))}
            </div>
          )
        }
      </Loaded>
    </Section>
  );
}

function SyncEntry({ sync, isOpen }: { sync: SourceSync; isOpen: boolean }) {
  return (
    <details className={styles.sync} open={isOpen}>
      <summary>
        <SyncState status={sync.status} />
        <span>{text.syncs.by(sync.cause)}</span>
        {sync.branch && <span className={styles.mono}>{sync.branch}</span>}
        {sync.commit_sha && <span className={styles.mono}>{sync.commit_sha.slice(0, 12)}</span>}
        <span className={styles.faint}>
          <When at={sync.started_at} />
        </span>
        <span className={styles.faint}>
          <Elapsed from={sync.started_at} to={sync.ended_at} />
        </span>
      </summary>
      <div>
        {(sync.log ?? []).length > 0 ? (
          <CodeBlock text={(sync.log ?? []).join("\n")} label={text.syncs.log} />
        ) : (
          <p className={styles.faint}>{text.syncs.noLog}</p>
        )}
      </div>
    </details>
  );
}
