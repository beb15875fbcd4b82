/** One source: what it holds, submit a recipe of it, fetch it now, and how its fetches went. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import { sessionQuery } from "#/api/session";
import { SOURCES_KEY, type SourceInfo, sourceQuery } from "#/api/sources";
import { usePolling } from "#/app/feed";
import { LoadError } from "#/app/PageError";
import { CodeBlock } from "#/design/CodeBlock";
import { EmptyState } from "#/design/EmptyState";
import { Facts } from "#/design/Facts";
import { PageBody, PageHeader, Section } from "#/design/Section";
import { Skeleton } from "#/design/Skeleton";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { When } from "#/parts/Figures";
import { Problem } from "#/parts/Problem";
import { RefusableButton } from "#/parts/RefusableButton";
import { words } from "#/words";
import { refuse } from "./rights";
import { SourceState } from "./SourceState";
import { SubmitForm } from "./SubmitForm";
import { Syncs } from "./Syncs";
import styles from "./sources.module.css";
import { text } from "./words";

const route = getRouteApi("/sources/$sourceId");

export function SourcePage() {
  const { sourceId } = route.useParams();
  const refetchInterval = usePolling();
  const source = useQuery({ ...sourceQuery(sourceId), refetchInterval });
  const title = source.data ? `${source.data.owner}/${source.data.name}` : text.title;
  useEffect(() => {
    document.title = `${title} · ${words.product}`;
  }, [title]);
  const sync = useSync(sourceId);
  if (source.error && !source.data)
    return <LoadError error={source.error} onRetry={() => void source.refetch()} />;
  if (!source.data) return <Skeleton lines={8} />;
  const isSyncing = sync.isBusy || source.data.syncing_since != null;
  return (
    <>
      <SourceHeader source={source.data} isSyncing={isSyncing} onSync={() => sync.submit("")} />
      <PageBody>
        <Problem error={sync.error} />
        {source.data.problem && !sync.error && (
          <p className={styles.notice} role="status">
            <strong>{text.source.failed}.</strong> {source.data.problem}
          </p>
        )}
        {source.data.commit_sha ? (
          <SubmitForm source={source.data} isSyncing={isSyncing} onBranch={(branch) => sync.submit(branch)} />
        ) : (
          <EmptyState icon="link" title={text.source.neverTitle}>
            <p>{text.source.never}</p>
          </EmptyState>
        )}
        <About source={source.data} />
        <Syncs sourceId={sourceId} />
      </PageBody>
    </>
  );
}

/** Fetches a branch, or the default one; the feed reports the sync to other tabs. */
function useSync(sourceId: string) {
  return useChange<string>({
    send: (branch) =>
      read(
        api.POST("/api/v1/sources/{source_id}/sync", {
          params: { path: { source_id: sourceId } },
          body: { branch },
        }),
      ),
    refresh: [SOURCES_KEY],
  });
}

type HeaderProps = { source: SourceInfo; isSyncing: boolean; onSync: () => void };

function SourceHeader({ source, isSyncing, onSync }: HeaderProps) {
  const navigate = useNavigate();
  const { data: session } = useQuery(sessionQuery);
  const [isRemoving, setRemoving] = useState(false);
  const slug = `${source.owner}/${source.name}`;
  const remove = useChange({
    send: () =>
      read(api.DELETE("/api/v1/sources/{source_id}", { params: { path: { source_id: source.id } } })),
    onDone: () => void navigate({ to: "/sources" }),
  });
  return (
    <>
      <PageHeader
        above={<Link to="/sources">{text.title}</Link>}
        title={slug}
        below={
          <>
            <SourceState source={source} />
            {source.synced_at != null && (
              <span>
                <When at={source.synced_at} />
              </span>
            )}
          </>
        }
        actions={
          <>
            <RefusableButton
              reason={isSyncing ? text.source.syncing : refuse(session, "runs:write")}
              onClick={onSync}
            >
              {isSyncing ? text.source.syncing : text.source.sync}
            </RefusableButton>
            <RefusableButton
              look="danger"
              reason={refuse(session, "environments:write")}
              onClick={() => setRemoving(true)}
            >
              {text.source.remove}
            </RefusableButton>
          </>
        }
      />
      <ConfirmDialog
        open={isRemoving}
        onClose={() => setRemoving(false)}
        title={text.source.removeTitle(slug)}
        action={text.source.remove}
        onConfirm={() => remove.submit()}
        isBusy={remove.isBusy}
        error={remove.error}
      >
        <p>{text.source.removeText}</p>
      </ConfirmDialog>
    </>
  );
}

function About({ source }: { source: SourceInfo }) {
  return (
    <Section title={text.webhook.title}>
      <Facts
        facts={[
          { name: text.source.repository, value: source.url },
          {
            name: text.source.credentials,
            value: source.has_credentials ? text.source.hasCredentials : text.source.noCredentials,
          },
        ]}
      />
      <p className={styles.hint}>{text.webhook.hint}</p>
      <CodeBlock text={source.webhook_url ?? ""} label={text.add.address} wrap />
    </Section>
  );
}
