/** The git repositories that this server takes rollouts and recipes from. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { sessionQuery } from "#/api/session";
import { type SourceInfo, sourceListQuery } from "#/api/sources";
import { usePolling } from "#/app/feed";
import { EmptyState } from "#/design/EmptyState";
import { FullPage, PageHeader } from "#/design/Section";
import { When } from "#/parts/Figures";
import { formatCount } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { RefusableButton } from "#/parts/RefusableButton";
import { type Column, VirtualTable } from "#/parts/VirtualTable";
import { words } from "#/words";
import { AddDialog } from "./AddDialog";
import { refuse } from "./rights";
import { SourceState } from "./SourceState";
import styles from "./sources.module.css";
import { text } from "./words";

const COLUMNS: readonly Column<SourceInfo>[] = [
  {
    id: "name",
    title: text.columns.name,
    width: 10,
    grow: 1,
    cell: (source) => (
      <Link to="/sources/$sourceId" params={{ sourceId: source.id }} className={styles.link}>
        {source.owner}/{source.name}
      </Link>
    ),
  },
  {
    id: "state",
    title: text.columns.state,
    width: 8,
    cell: (source) => (
      <span title={source.problem || undefined}>
        <SourceState source={source} />
      </span>
    ),
  },
  {
    id: "repository",
    title: text.columns.repository,
    width: 12,
    grow: 2,
    cell: (source) => <span title={source.url}>{source.repository}</span>,
  },
  {
    id: "commit",
    title: text.columns.commit,
    width: 12,
    grow: 2,
    cell: (source) => (
      <span title={source.subject}>
        <span className={styles.mono}>{source.commit_sha?.slice(0, 8)}</span> {source.subject}
      </span>
    ),
  },
  {
    id: "rollouts",
    title: text.columns.rollouts,
    width: 4.5,
    isNumber: true,
    cell: (source) => formatCount(source.rollouts?.length),
  },
  {
    id: "synced",
    title: text.columns.synced,
    width: 6,
    isNumber: true,
    cell: (source) => <When at={source.synced_at} />,
  },
];

export function SourcesPage() {
  useEffect(() => {
    document.title = `${text.title} · ${words.product}`;
  }, []);
  const navigate = useNavigate();
  const [isOpen, setOpen] = useState(false);
  const { data: session } = useQuery(sessionQuery);
  const refetchInterval = usePolling();
  const sources = useQuery({ ...sourceListQuery, refetchInterval });
  return (
    <FullPage>
      <PageHeader
        title={text.title}
        actions={
          <RefusableButton
            look="primary"
            icon="plus"
            reason={refuse(session, "environments:write")}
            onClick={() => setOpen(true)}
          >
            {text.add.open}
          </RefusableButton>
        }
      />
      <Loaded query={sources} lines={8}>
        {(found) => (
          <VirtualTable
            label={text.title}
            columns={COLUMNS}
            count={found.length}
            rowAt={(index) => found[index]}
            keyOf={(source) => source.id}
            onOpen={(source) => void navigate({ to: "/sources/$sourceId", params: { sourceId: source.id } })}
            empty={
              <EmptyState icon="link" title={text.none} commands={text.firstCommands(location.origin)}>
                <p>{text.noneHint}</p>
              </EmptyState>
            }
          />
        )}
      </Loaded>
      {isOpen && <AddDialog onClose={() => setOpen(false)} />}
    </FullPage>
  );
}
