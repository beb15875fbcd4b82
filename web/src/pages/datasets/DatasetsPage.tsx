/** The datasets of the server that its reader may see, and what is being uploaded. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { type DatasetInfo, datasetListQuery } from "#/api/datasets";
import { type SessionInfo, sessionQuery } from "#/api/session";
import { usePolling } from "#/app/feed";
import { LoadError } from "#/app/PageError";
import { EmptyState } from "#/design/EmptyState";
import { FullPage, PageHeader } from "#/design/Section";
import { Segmented } from "#/design/Segmented";
import { Skeleton } from "#/design/Skeleton";
import { When } from "#/parts/Figures";
import { formatBytes, formatCount } from "#/parts/format";
import { RefusableButton } from "#/parts/RefusableButton";
import { type Column, VirtualTable } from "#/parts/VirtualTable";
import { words } from "#/words";
import styles from "./datasets.module.css";
import { UploadDialog } from "./UploadDialog";
import { Uploads } from "./Uploads";
import { text } from "./words";

const route = getRouteApi("/datasets");
const NEAR_END = 20;

const COLUMNS: readonly Column<DatasetInfo>[] = [
  {
    id: "name",
    title: text.columns.name,
    width: 12,
    grow: 2,
    cell: (dataset) => (
      <Link
        to="/datasets/$owner/$name"
        params={{ owner: dataset.owner, name: dataset.name }}
        className={styles.link}
        title={`${dataset.owner}/${dataset.name}`}
      >
        {dataset.owner}/{dataset.name}
      </Link>
    ),
  },
  {
    id: "description",
    title: text.columns.description,
    width: 10,
    grow: 2,
    cell: (dataset) => <span title={dataset.description}>{dataset.description}</span>,
  },
  {
    id: "visibility",
    title: text.columns.visibility,
    width: 5.5,
    cell: (dataset) => text.visibility[dataset.visibility] ?? dataset.visibility,
  },
  {
    id: "rows",
    title: text.columns.rows,
    width: 5,
    isNumber: true,
    cell: (dataset) => formatCount(dataset.latest?.rows),
  },
  {
    id: "size",
    title: text.columns.size,
    width: 5,
    isNumber: true,
    cell: (dataset) => formatBytes(dataset.latest?.size),
  },
  {
    id: "format",
    title: text.columns.format,
    width: 5,
    cell: (dataset) => dataset.latest?.format ?? "–",
  },
  {
    id: "updated",
    title: text.columns.updated,
    width: 6,
    isNumber: true,
    cell: (dataset) => <When at={dataset.updated_at} />,
  },
];

export function DatasetsPage() {
  useEffect(() => {
    document.title = `${text.title} · ${words.product}`;
  }, []);
  const { mine = false } = route.useSearch();
  const navigate = useNavigate();
  const { data: session } = useQuery(sessionQuery);
  const [isOpen, setOpen] = useState(false);
  const refetchInterval = usePolling();
  const list = useInfiniteQuery({ ...datasetListQuery(mine), refetchInterval });
  const rows = (list.data?.pages ?? []).flatMap((page) => page.items);
  if (list.error && rows.length === 0)
    return <LoadError error={list.error} onRetry={() => void list.refetch()} />;
  return (
    <FullPage>
      <PageHeader
        title={text.title}
        actions={
          <>
            <Segmented
              label={text.which}
              options={[
                { value: "all", label: text.all },
                { value: "mine", label: text.mine },
              ]}
              value={mine ? "mine" : "all"}
              onChange={(value) =>
                void navigate({
                  to: "/datasets",
                  search: value === "mine" ? { mine: true } : {},
                  replace: true,
                })
              }
            />
            <RefusableButton
              look="primary"
              icon="arrowUp"
              reason={refuseUpload(session)}
              onClick={() => setOpen(true)}
            >
              {text.upload.open}
            </RefusableButton>
          </>
        }
      />
      <div className={styles.beside}>
        <Uploads />
      </div>
      {list.isPending ? (
        <Skeleton lines={8} />
      ) : (
        <VirtualTable
          label={text.title}
          columns={COLUMNS}
          count={rows.length + (list.hasNextPage ? 1 : 0)}
          rowAt={(index) => rows[index]}
          keyOf={(dataset) => dataset.id}
          onOpen={({ owner, name }) =>
            void navigate({ to: "/datasets/$owner/$name", params: { owner, name } })
          }
          onRange={(_, last) => {
            if (list.hasNextPage && !list.isFetchingNextPage && last > rows.length - NEAR_END)
              void list.fetchNextPage();
          }}
          empty={
            <EmptyState icon="list" title={text.none} commands={text.firstCommands(location.origin)}>
              <p>{text.noneHint}</p>
            </EmptyState>
          }
        />
      )}
      {isOpen && <UploadDialog open onClose={() => setOpen(false)} />}
    </FullPage>
  );
}

/** Why somebody may not upload; null if they may. */
export function refuseUpload(session: SessionInfo | null | undefined): string | null {
  if (!session?.user) return text.upload.notLoggedIn;
  return session.scopes.includes("environments:write") ? null : text.upload.noScope;
}
