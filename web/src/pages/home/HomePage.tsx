/** The start page: what runs now, what wants something of you, what ended last. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { api, read } from "#/api/client";
import { RUNS_KEY } from "#/api/runs";
import { sessionQuery } from "#/api/session";
import type { RunInfo, RunListQuery } from "#/api/types";
import { usePolling } from "#/app/feed";
import { buttonClass } from "#/design/Button";
import { PageBody, PageHeader, Section } from "#/design/Section";
import { formatMoney } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { PageLink } from "#/parts/PageLink";
import { words } from "#/words";
import { NEW_RUN, wizardAddress } from "../wizard/link";
import { FirstVisit } from "./FirstVisit";
import styles from "./HomePage.module.css";
import { RunLines } from "./RunLines";

const FEW = 8;

export function HomePage() {
  useEffect(() => {
    document.title = words.product;
  }, []);
  const active = useShortList({ status: ["running", "stopping", "pending"] });
  const failed = useShortList({ status: ["failed", "timed_out"] });
  const finished = useShortList({ status: ["finished", "stopped"], sort: "ended" });
  const isEmpty = [active, failed, finished].every((list) => list.data?.total === 0);
  return (
    <>
      <PageHeader title={words.nav.home} below={<Balance />} actions={!isEmpty && <NewRun />} />
      <PageBody>
        {isEmpty ? (
          <FirstVisit />
        ) : (
          <>
            <ListSection
              title={words.home.running}
              list={active}
              empty={words.home.noneRunning}
              search={{ status: ["running", "stopping", "pending"] }}
            />
            <ListSection
              title={words.home.failed}
              list={failed}
              empty={words.home.noneFailed}
              search={{ status: ["failed", "timed_out"] }}
              hasCause
            />
            <ListSection
              title={words.home.finished}
              list={finished}
              empty={words.home.noneFinished}
              search={{ status: ["finished", "stopped"], sort: "ended" }}
            />
          </>
        )}
      </PageBody>
    </>
  );
}

function NewRun() {
  const session = useQuery(sessionQuery);
  if (!session.data?.user) return null;
  return (
    <PageLink href={wizardAddress({})} className={buttonClass("plain")}>
      {NEW_RUN}
    </PageLink>
  );
}

/** What is left to spend, where somebody pays. */
function Balance() {
  const session = useQuery(sessionQuery);
  const balance = useQuery({
    queryKey: ["balance"],
    queryFn: ({ signal }) => read(api.GET("/api/v1/balance", { signal })),
    enabled: Boolean(session.data?.user),
    meta: { quiet: true },
    retry: false,
  });
  const left = balance.data?.balance_usd;
  return left == null ? null : <span>{words.home.balance(formatMoney(left))}</span>;
}

type ShortList = { items: RunInfo[]; total: number };

function useShortList(query: RunListQuery) {
  const refetchInterval = usePolling();
  return useQuery<ShortList>({
    queryKey: [...RUNS_KEY, "total", "home", query],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/runs", { params: { query: { ...query, limit: FEW } }, signal })),
    refetchInterval,
  });
}

type SectionProps = {
  title: string;
  list: ReturnType<typeof useShortList>;
  empty: string;
  search: { status: RunInfo["status"][]; sort?: "ended" };
  hasCause?: boolean;
};

function ListSection({ title, list, empty, search, hasCause = false }: SectionProps) {
  const more = (list.data?.total ?? 0) > FEW;
  return (
    <Section
      title={title}
      note={list.data && list.data.total > 0 ? list.data.total : undefined}
      actions={
        more && (
          <Link to="/runs" search={search}>
            {words.home.all}
          </Link>
        )
      }
      flush
    >
      <Loaded query={list}>
        {({ items }) =>
          items.length === 0 ? (
            <p className={styles.empty}>{empty}</p>
          ) : (
            <RunLines runs={items} hasCause={hasCause} />
          )
        }
      </Loaded>
    </Section>
  );
}
