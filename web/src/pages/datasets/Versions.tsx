/** The versions of a dataset, those pushed last first. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import { DATASETS_KEY, type DatasetInfo, type DatasetVersion } from "#/api/datasets";
import { Badge } from "#/design/Badge";
import { Hidden } from "#/design/Hidden";
import { Section } from "#/design/Section";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { When } from "#/parts/Figures";
import { formatBytes, formatCount } from "#/parts/format";
import { RefusableButton } from "#/parts/RefusableButton";
import { shortHash } from "./DatasetPage";
import styles from "./datasets.module.css";
import { text } from "./words";

type Props = { dataset: DatasetInfo; versions: readonly DatasetVersion[]; shown: string | undefined };

export function Versions({ dataset, versions, shown }: Props) {
  const [doomed, setDoomed] = useState<DatasetVersion | null>(null);
  const { owner, name } = dataset;
  const remove = useChange<string>({
    send: (sha256) =>
      read(
        api.DELETE("/api/v1/datasets/{owner}/{name}/versions/{sha256}", {
          params: { path: { owner, name, sha256 } },
        }),
      ),
    refresh: [DATASETS_KEY],
    onDone: () => setDoomed(null),
  });
  const close = () => {
    remove.reset();
    setDoomed(null);
  };
  return (
    <Section title={text.versions.title} note={versions.length} flush>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <section className={styles.scroll} aria-label={text.versions.title} tabIndex={0}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{text.facts.version}</th>
              <th scope="col" className={styles.number}>
                {text.columns.rows}
              </th>
              <th scope="col" className={styles.number}>
                {text.columns.size}
              </th>
              <th scope="col">{text.facts.pushedBy}</th>
              <th scope="col">{text.columns.updated}</th>
              <th scope="col">
                <Hidden>{text.versions.remove}</Hidden>
              </th>
            </tr>
          </thead>
          <tbody>
            {versions.map((version, index) => (
              <tr key={version.sha256}>
                <td>
                  <Link
                    to="/datasets/$owner/$name"
                    params={{ owner, name }}
                    search={{ version: shortHash(version.sha256) }}
                    className={styles.mono}
                    aria-current={version.sha256 === shown ? "true" : undefined}
                    title={version.sha256}
                  >
                    {shortHash(version.sha256)}
                  </Link>{" "}
                  {index === 0 && <Badge tone="accent">{text.latest}</Badge>}
                </td>
                <td className={styles.number}>{formatCount(version.rows)}</td>
                <td className={styles.number}>{formatBytes(version.size)}</td>
                <td>{version.pushed_by}</td>
                <td>
                  <When at={version.pushed_at} />
                </td>
                <td className={styles.number}>
                  <RefusableButton
                    small
                    reason={dataset.role === "owner" ? null : text.change.notOwner(owner)}
                    onClick={() => setDoomed(version)}
                  >
                    {text.versions.remove}
                    <Hidden> {shortHash(version.sha256)}</Hidden>
                  </RefusableButton>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <ConfirmDialog
        open={doomed !== null}
        onClose={close}
        title={text.versions.removeTitle(doomed ? shortHash(doomed.sha256) : "")}
        action={text.versions.remove}
        onConfirm={() => doomed && remove.submit(doomed.sha256)}
        isBusy={remove.isBusy}
        error={remove.error}
      >
        <p>{text.versions.removeText}</p>
      </ConfirmDialog>
    </Section>
  );
}
