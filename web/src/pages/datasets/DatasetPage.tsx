/** One dataset: its first rows, its versions, the runs that used it; change it, add to it, delete it. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useChange } from "#/api/change";
import { api, apiHref, read } from "#/api/client";
import {
  type DatasetInfo,
  type DatasetVersion,
  datasetQuery,
  datasetRunsQuery,
  datasetVersionsQuery,
} from "#/api/datasets";
import { sessionQuery } from "#/api/session";
import { LoadError } from "#/app/PageError";
import { Badge } from "#/design/Badge";
import { buttonClass } from "#/design/Button";
import { CodeBlock } from "#/design/CodeBlock";
import { Facts } from "#/design/Facts";
import { PageBody, PageHeader, Section } from "#/design/Section";
import { Skeleton } from "#/design/Skeleton";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { When } from "#/parts/Figures";
import { formatBytes, formatCount } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { RefusableButton } from "#/parts/RefusableButton";
import { words } from "#/words";
import { RunLines } from "../home/RunLines";
import { refuseUpload } from "./DatasetsPage";
import styles from "./datasets.module.css";
import { EditDialog } from "./EditDialog";
import { Preview } from "./Preview";
import { UploadDialog } from "./UploadDialog";
import { Uploads } from "./Uploads";
import { Versions } from "./Versions";
import { text } from "./words";

const route = getRouteApi("/datasets/$owner/$name");
const SHORT = 12;

export const shortHash = (sha256: string): string => sha256.slice(0, SHORT);

export function DatasetPage() {
  const { owner, name } = route.useParams();
  const { version: wanted } = route.useSearch();
  const slug = `${owner}/${name}`;
  useEffect(() => {
    document.title = `${slug} · ${words.product}`;
  }, [slug]);
  const info = useQuery(datasetQuery(owner, name));
  const versions = useQuery(datasetVersionsQuery(owner, name));
  if (info.error && !info.data) return <LoadError error={info.error} onRetry={() => void info.refetch()} />;
  if (!info.data) return <Skeleton lines={8} />;
  const dataset = info.data;
  const shown = versions.data?.find((each) => wanted && each.sha256.startsWith(wanted)) ?? versions.data?.[0];
  return (
    <>
      <DatasetHeader dataset={dataset} versions={versions.data ?? []} shown={shown} />
      <PageBody>
        <Uploads />
        {dataset.description && <p className={styles.description}>{dataset.description}</p>}
        {shown && <Preview dataset={dataset} version={shown} />}
        {shown && <About slug={slug} version={shown} />}
        <Loaded query={versions}>
          {(found) => <Versions dataset={dataset} versions={found} shown={shown?.sha256} />}
        </Loaded>
        <UsedBy owner={owner} name={name} />
      </PageBody>
    </>
  );
}

type HeaderProps = {
  dataset: DatasetInfo;
  versions: readonly DatasetVersion[];
  shown: DatasetVersion | undefined;
};

function DatasetHeader({ dataset, versions, shown }: HeaderProps) {
  const { owner, name } = dataset;
  const slug = `${owner}/${name}`;
  const navigate = useNavigate();
  const { data: session } = useQuery(sessionQuery);
  const [open, setOpen] = useState<"upload" | "edit" | "delete" | null>(null);
  const remove = useChange({
    send: () => read(api.DELETE("/api/v1/datasets/{owner}/{name}", { params: { path: { owner, name } } })),
    onDone: () => void navigate({ to: "/datasets" }),
  });
  const mayPush = dataset.role === "owner" || dataset.role === "write";
  const notOwner = dataset.role === "owner" ? null : text.change.notOwner(owner);
  const close = () => setOpen(null);
  return (
    <>
      <PageHeader
        above={<Link to="/datasets">{text.title}</Link>}
        title={slug}
        below={
          <>
            <Badge icon={dataset.visibility === "public" ? "link" : "key"}>
              {text.visibility[dataset.visibility]}
            </Badge>
            <span>
              {text.columns.updated} <When at={dataset.updated_at} />
            </span>
          </>
        }
        actions={
          <>
            {shown && (
              <a
                className={buttonClass("plain")}
                href={apiHref(`/datasets/${owner}/${name}/versions/${shown.sha256}/content`)}
                download
              >
                {text.change.download}
              </a>
            )}
            <RefusableButton
              reason={refuseUpload(session) ?? (mayPush ? null : text.change.notWriter(owner))}
              onClick={() => setOpen("upload")}
            >
              {text.upload.newVersion}
            </RefusableButton>
            <RefusableButton reason={notOwner} onClick={() => setOpen("edit")}>
              {text.change.edit}
            </RefusableButton>
            <RefusableButton look="danger" reason={notOwner} onClick={() => setOpen("delete")}>
              {text.change.remove}
            </RefusableButton>
          </>
        }
      />
      {open === "upload" && <UploadDialog open onClose={close} target={{ owner, name }} />}
      {open === "edit" && <EditDialog dataset={dataset} onClose={close} />}
      <ConfirmDialog
        open={open === "delete"}
        onClose={close}
        title={text.change.removeTitle(slug)}
        action={text.change.remove}
        typed={name}
        onConfirm={() => remove.submit()}
        isBusy={remove.isBusy}
        error={remove.error}
      >
        <p>{text.change.removeText(versions.length)}</p>
      </ConfirmDialog>
    </>
  );
}

function About({ slug, version }: { slug: string; version: DatasetVersion }) {
  const pinned = `${slug}@${shortHash(version.sha256)}`;
  return (
    <Section title={text.use.title}>
      <Facts
        facts={[
          { name: text.facts.version, value: <code>{shortHash(version.sha256)}</code> },
          { name: text.columns.rows, value: formatCount(version.rows) },
          { name: text.columns.size, value: formatBytes(version.size) },
          { name: text.columns.format, value: version.format },
          { name: text.facts.pushedBy, value: version.pushed_by },
          { name: text.facts.created, value: <When at={version.created_at} /> },
        ]}
      />
      <p className={styles.hint}>{text.use.hint}</p>
      <CodeBlock text={`dataset = "${pinned}"\nproctor dataset pull ${pinned}`} />
    </Section>
  );
}

function UsedBy({ owner, name }: { owner: string; name: string }) {
  const { data: session } = useQuery(sessionQuery);
  const runs = useQuery({ ...datasetRunsQuery(owner, name), enabled: Boolean(session?.user) });
  if (!session?.user) return null;
  return (
    <Section title={text.runs.title} flush>
      <Loaded query={runs}>
        {(found) =>
          found.length === 0 ? (
            <p className={styles.note}>{text.runs.none}</p>
          ) : (
            <div className={styles.scroll}>
              <RunLines runs={found} hasCause={false} />
            </div>
          )
        }
      </Loaded>
    </Section>
  );
}
