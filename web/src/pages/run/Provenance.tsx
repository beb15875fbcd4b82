/** Exactly what ran: version, hash, commit, dataset, settings as resolved. */
import { Link } from "@tanstack/react-router";
import type { RunInfo } from "#/api/types";
import { CopyButton } from "#/design/CopyButton";
import { type Fact, Facts } from "#/design/Facts";
import { Section } from "#/design/Section";
import { words } from "#/words";
import styles from "./Provenance.module.css";
import { formatSetting, listSettings } from "./settings";

/** `isConfig`: below the settings themselves, which are not repeated. */
export function Provenance({ run, isConfig = false }: { run: RunInfo; isConfig?: boolean }) {
  const text = words.run.provenance;
  const resolved = listSettings(run.resolved).map(([name, value]) => ({
    name,
    value: formatSetting(value),
  }));
  return (
    <Section
      title={text.title}
      actions={
        !isConfig && (
          <Link to="/runs/$runId/config" params={{ runId: run.id }}>
            {text.allSettings}
          </Link>
        )
      }
    >
      <div className={styles.columns}>
        <Facts facts={[...listFacts(run), ...listOrigin(run)]} />
        {!isConfig && <Facts facts={resolved} />}
      </div>
    </Section>
  );
}

function listFacts(run: RunInfo): (Fact | false)[] {
  const text = words.run.provenance;
  const granted = Object.entries(run.permissions)
    .filter(([, isGranted]) => isGranted)
    .map(([name]) => name);
  return [
    { name: text.environment, value: run.version ? `${run.environment}@${run.version}` : run.environment },
    Boolean(run.content_hash) && { name: text.contentHash, value: <Hash text={run.content_hash ?? ""} /> },
    { name: text.model, value: run.model },
    Boolean(run.agent) && { name: text.agent, value: run.agent },
    Boolean(run.runtime) && { name: text.runtime, value: run.runtime },
    run.kind === "hosted" && { name: text.permissions, value: granted.join(", ") || words.none },
    Boolean(run.client_run_id) && { name: text.clientRun, value: <Hash text={run.client_run_id ?? ""} /> },
    { name: text.run, value: <Hash text={run.id} /> },
  ];
}

function listOrigin(run: RunInfo): Fact[] {
  if (!run.origin) return [];
  const text = words.run.provenance;
  const { repository, branch, commit_sha, rollout, dataset, config_hash } = run.origin;
  return [
    { name: text.repository, value: `${repository} (${branch})` },
    { name: text.commit, value: <Hash text={commit_sha} /> },
    { name: text.rollout, value: rollout },
    { name: text.dataset, value: text.rows(`${dataset.owner}/${dataset.name}`, dataset.selected_rows) },
    { name: text.datasetHash, value: <Hash text={dataset.sha256} /> },
    { name: text.configHash, value: <Hash text={config_hash} /> },
  ];
}

const Hash = ({ text }: { text: string }) => (
  <span className={styles.hash}>
    <code title={text}>{text.length > 20 ? `${text.slice(0, 16)}…` : text}</code>
    <CopyButton text={text} />
  </span>
);
