/** The versions, and the check of the one that is shown: its state, its message and its log, live. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "#/api/change";
import { ENVIRONMENTS_KEY, environmentKey } from "#/api/environmentKeys";
import { checkAgain, deleteVersion, slugOf, type VersionOf, versionsQuery } from "#/api/environments";
import type { Version } from "#/api/types";
import { usePolling } from "#/app/feed";
import { PageBody, Section } from "#/design/Section";
import { Ansi } from "#/parts/Ansi";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { When } from "#/parts/Figures";
import { formatBytes, formatCount, formatDuration } from "#/parts/format";
import { LineView } from "#/parts/LineView";
import { Loaded } from "#/parts/Loaded";
import { Problem } from "#/parts/Problem";
import { RefusableButton } from "#/parts/RefusableButton";
import { CheckBadge, CheckMark } from "../environments/CheckMark";
import { useEnvironment, versionOf } from "./context";
import styles from "./environment.module.css";
import { explainRole } from "./rights";
import { WithVersion } from "./WithVersion";
import { text } from "./words";

const words = text.versions;
const LINE_HEIGHT = 20;
const PADDING = 8;
const WRAP_WIDTH = 100;

export function Versions() {
  return (
    <PageBody>
      <WithVersion>{(version, of) => <CheckResult version={version} of={of} />}</WithVersion>
      <AllVersions />
    </PageBody>
  );
}

function CheckResult({ version, of }: { version: Version; of: VersionOf }) {
  const shown = useEnvironment();
  const change = useChange({
    send: (_: undefined) => checkAgain(of),
    refresh: [environmentKey(slugOf(of)), ENVIRONMENTS_KEY],
  });
  const { check } = version;
  const isOpen = check.status === "pending" || check.status === "running";
  return (
    <Section
      title={words.check(version.version)}
      note={check.seconds != null && !isOpen ? words.took(formatDuration(check.seconds)) : undefined}
      actions={
        <>
          <CheckBadge status={check.status} />
          <RefusableButton
            small
            reason={explainRole(shown, "write")}
            disabled={change.isBusy || isOpen}
            onClick={() => change.submit(undefined)}
          >
            {words.again}
          </RefusableButton>
        </>
      }
    >
      <div className={styles.stack}>
        <p className={styles.message}>{describe(check)}</p>
        <Problem error={change.error} />
        {check.log ? <CheckLog log={check.log} /> : <p className={styles.faint}>{words.noLog}</p>}
      </div>
    </Section>
  );
}

/** As a terminal shows it. */
function CheckLog({ log }: { log: string }) {
  const lines = log.split("\n");
  return (
    <div
      className={styles.log}
      style={{ height: `min(22rem, ${lines.length * LINE_HEIGHT + 2 * PADDING}px)` }}
    >
      <LineView
        label={words.log}
        count={lines.length}
        wrap
        linesOf={(index) => Math.ceil((lines[index]?.length ?? 0) / WRAP_WIDTH)}
        lineAt={(index) => ({ label: index + 1, content: <Ansi text={lines[index] ?? ""} /> })}
      />
    </div>
  );
}

function describe(check: Version["check"]): string {
  if (check.status === "pending") return words.waiting;
  return check.status === "running" ? words.running : check.message;
}

function AllVersions() {
  const { slug, version: current } = useEnvironment();
  const refetchInterval = usePolling();
  const versions = useQuery({ ...versionsQuery(slug), refetchInterval });
  const [doomed, setDoomed] = useState<string | null>(null);
  return (
    <Section title={words.title} flush>
      <Loaded query={versions}>
        {({ items }) => (
          <table className={styles.table}>
            <thead>
              <tr>
                <th scope="col">{words.columns.version}</th>
                <th scope="col">{words.columns.check}</th>
                <th scope="col" className={styles.number}>
                  {words.columns.tasks}
                </th>
                <th scope="col">{words.columns.by}</th>
                <th scope="col">{words.columns.when}</th>
                <th scope="col" className={styles.number}>
                  {words.columns.size}
                </th>
                <th scope="col">{words.columns.content}</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {items.map((each) => (
                <VersionRow
                  key={each.id}
                  version={each}
                  isCurrent={each.version === current}
                  onDelete={() => setDoomed(each.version)}
                />
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
      <DeleteVersion version={doomed} onClose={() => setDoomed(null)} />
    </Section>
  );
}

function VersionRow(props: { version: Version; isCurrent: boolean; onDelete: () => void }) {
  const { version, isCurrent } = props;
  const shown = useEnvironment();
  return (
    <tr className={isCurrent ? styles.current : undefined}>
      <th scope="row">
        <Link
          to="/e/$owner/$name/versions"
          params={{ owner: shown.slug.owner, name: `${shown.slug.name}@${version.version}` }}
          aria-current={isCurrent ? "true" : undefined}
        >
          {version.version}
        </Link>
      </th>
      <td className={styles.narrow}>
        <CheckMark status={version.check.status} />
      </td>
      <td className={styles.number}>{formatCount(version.check.tasks)}</td>
      <td>{version.pushed_by}</td>
      <td className={styles.narrow}>
        <When at={version.created_at} />
      </td>
      <td className={styles.number}>{formatBytes(version.source_size)}</td>
      <td>
        <code title={version.content_hash}>{version.content_hash.slice(0, 12)}</code>
      </td>
      <td>
        <RefusableButton
          look="quiet"
          small
          reason={explainRole(shown, "owner")}
          aria-label={`${words.delete} ${version.version}`}
          onClick={props.onDelete}
        >
          {words.delete}
        </RefusableButton>
      </td>
    </tr>
  );
}

function DeleteVersion({ version, onClose }: { version: string | null; onClose: () => void }) {
  const { slug } = useEnvironment();
  const change = useChange({
    send: (doomed: string) => deleteVersion(versionOf(slug, doomed)),
    refresh: [environmentKey(slugOf(slug)), ENVIRONMENTS_KEY],
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open={version !== null}
      onClose={() => {
        change.reset();
        onClose();
      }}
      title={words.deleteTitle(version ?? "")}
      action={words.delete}
      onConfirm={() => version !== null && change.submit(version)}
      isBusy={change.isBusy}
      error={change.error}
    >
      <p>{words.deleteText}</p>
    </ConfirmDialog>
  );
}
