/** The files of a version: folders to walk through, and a viewer for text. */
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { ApiError, apiHref } from "#/api/client";
import { filesQuery, type VersionOf } from "#/api/environments";
import { buttonClass } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { EmptyState } from "#/design/EmptyState";
import { Icon } from "#/design/Icon";
import { PageBody, Section } from "#/design/Section";
import { formatBytes } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { TextView } from "#/parts/TextView";
import styles from "./environment.module.css";
import { WithVersion } from "./WithVersion";
import { text } from "./words";

const words = text.files;

type Entry = { path: string; size: number };

export function Files() {
  const { _splat: path = "" } = useParams({ strict: false });
  return <WithVersion>{(_, of) => <Content of={of} path={path.replace(/\/+$/, "")} />}</WithVersion>;
}

function Content({ of, path }: { of: VersionOf; path: string }) {
  const query = useQuery(filesQuery(of, path));
  if (!query.data && query.error instanceof ApiError && query.error.status === 404)
    return (
      <>
        <PathBar of={of} path={path} />
        <EmptyState icon="help" title={words.notThere(path)} />
      </>
    );
  return (
    <Loaded query={query} lines={8}>
      {(found) => (
        <>
          <PathBar of={of} path={path} />
          {found.entries ? (
            <Folder entries={found.entries} />
          ) : (
            <FileText path={path} content={found.text ?? null} size={found.size} isCut={found.truncated} />
          )}
        </>
      )}
    </Loaded>
  );
}

function PathBar({ of, path }: { of: VersionOf; path: string }) {
  const parts = path === "" ? [] : path.split("/");
  const source = `/environments/${of.owner}/${of.name}/versions/${encodeURIComponent(of.version)}/source`;
  return (
    <div className={styles.fileHead}>
      <nav className={styles.path} aria-label={words.path}>
        <FileLink path="">{words.root}</FileLink>
        {parts.map((part, index) => (
          <span key={parts.slice(0, index + 1).join("/")} className={styles.path}>
            <span className={styles.faint}>/</span>
            {index === parts.length - 1 ? (
              <span aria-current="page">{part}</span>
            ) : (
              <FileLink path={parts.slice(0, index + 1).join("/")}>{part}</FileLink>
            )}
          </span>
        ))}
      </nav>
      <a href={apiHref(source)} download className={`${buttonClass("plain", true)} ${styles.end}`}>
        <Icon name="download" />
        {words.download}
      </a>
    </div>
  );
}

/** To another file of the same version, which stands in the address or not, as before. */
function FileLink({ path, children }: { path: string; children: React.ReactNode }) {
  const { owner = "", name = "" } = useParams({ strict: false });
  return (
    <Link to="/e/$owner/$name/files/$" params={{ owner, name, _splat: path }}>
      {children}
    </Link>
  );
}

function Folder({ entries }: { entries: readonly Entry[] }) {
  if (entries.length === 0) return <EmptyState title={words.empty} />;
  const isFolder = (entry: Entry) => entry.path.endsWith("/");
  const sorted = [...entries.filter(isFolder), ...entries.filter((entry) => !isFolder(entry))];
  return (
    <PageBody>
      <Section title={words.title} flush>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{words.name}</th>
              <th scope="col" className={styles.number}>
                {words.size}
              </th>
            </tr>
          </thead>
          <tbody>
            {sorted.map((entry) => (
              <tr key={entry.path}>
                <th scope="row">
                  <FileLink path={entry.path.replace(/\/$/, "")}>
                    <code>{entry.path.replace(/^.*\/(?=[^/])/, "")}</code>
                  </FileLink>
                </th>
                <td className={styles.number}>{formatBytes(entry.size)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Section>
    </PageBody>
  );
}

type FileProps = { path: string; content: string | null; size: number; isCut: boolean };

function FileText({ path, content, size, isCut }: FileProps) {
  if (content === null)
    return (
      <EmptyState icon="ban" title={words.binary}>
        <p>{words.binaryHint}</p>
      </EmptyState>
    );
  return (
    <div className={styles.file}>
      {isCut && (
        <p className={styles.note}>{words.cut(formatBytes(new Blob([content]).size), formatBytes(size))}</p>
      )}
      <TextView key={path} text={content} label={words.text(path)} actions={<CopyButton text={content} />} />
    </div>
  );
}
