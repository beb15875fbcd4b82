/** The catalogue: the environments that the reader may see, filtered by its address, walked by keys. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useEffect } from "react";
import { environmentFacetsQuery, environmentListQuery } from "#/api/environments";
import { sessionQuery } from "#/api/session";
import { usePolling } from "#/app/feed";
import { LoadError } from "#/app/PageError";
import { changeSearch, type SearchChange } from "#/app/search";
import { Button } from "#/design/Button";
import { CodeBlock } from "#/design/CodeBlock";
import { EmptyState } from "#/design/EmptyState";
import { Popover } from "#/design/Popover";
import { FullPage, PageHeader } from "#/design/Section";
import { Skeleton } from "#/design/Skeleton";
import { VirtualTable } from "#/parts/VirtualTable";
import { words } from "#/words";
import { CatalogueFilters } from "./CatalogueFilters";
import { COLUMNS } from "./columns";
import styles from "./Environments.module.css";
import { buildCatalogueQuery, type CatalogueSearch, isFiltered } from "./search";
import { text } from "./words";

const route = getRouteApi("/environments");
const NEAR_END = 20;

export function EnvironmentsPage() {
  useEffect(() => {
    document.title = `${text.title} · ${words.product}`;
  }, []);
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const session = useQuery({ ...sessionQuery, meta: { quiet: true } });
  const update = (change: SearchChange<CatalogueSearch>) =>
    void navigate({ search: (before: CatalogueSearch) => changeSearch(before, change), replace: true });
  const { list, rows, facets } = useCatalogue(search);
  if (list.error && rows.length === 0)
    return <LoadError error={list.error} onRetry={() => void list.refetch()} />;
  const sort = search.sort ?? "updated_at";
  return (
    <FullPage>
      <PageHeader
        title={text.title}
        below={<span>{text.count(rows.length, list.hasNextPage)}</span>}
        actions={session.data?.user && rows.length > 0 && <HowToPush />}
      />
      <CatalogueFilters
        search={search}
        facets={facets}
        hasMine={Boolean(session.data?.user)}
        onChange={update}
      />
      {list.isPending ? (
        <Skeleton lines={8} />
      ) : (
        <VirtualTable
          label={text.title}
          columns={COLUMNS}
          count={rows.length + (list.hasNextPage ? 1 : 0)}
          rowAt={(index) => rows[index]}
          keyOf={(environment) => environment.id}
          onOpen={({ owner, name }) =>
            void navigate({ to: "/e/$owner/$name/readme", params: { owner, name } })
          }
          sort={{ by: sort, descending: sort === "updated_at" || sort === "created_at" }}
          onSort={({ by }) => update({ sort: by === "updated_at" ? undefined : by })}
          onRange={(_, last) => {
            if (list.hasNextPage && !list.isFetchingNextPage && last > rows.length - NEAR_END)
              void list.fetchNextPage();
          }}
          resetKey={JSON.stringify(search)}
          empty={<NoEnvironments isFiltered={isFiltered(search)} />}
        />
      )}
    </FullPage>
  );
}

function useCatalogue(search: CatalogueSearch) {
  const query = buildCatalogueQuery(search);
  const refetchInterval = usePolling();
  const list = useInfiniteQuery({ ...environmentListQuery(query), refetchInterval });
  const { search: wanted, mine } = query;
  const facets = useQuery({
    ...environmentFacetsQuery({ ...(wanted ? { search: wanted } : {}), ...(mine ? { mine } : {}) }),
    refetchInterval,
  });
  return { list, rows: list.data?.pages.flatMap((page) => page.items) ?? [], facets: facets.data };
}

function HowToPush() {
  return (
    <Popover
      trigger={
        <Button look="plain" icon="arrowUp">
          {text.push}
        </Button>
      }
      label={text.push}
      align="end"
    >
      <div className={styles.push}>
        <p>{text.pushHint}</p>
        <CodeBlock text={text.firstCommands(location.origin).join("\n")} label={text.push} />
      </div>
    </Popover>
  );
}

function NoEnvironments({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState icon="filter" title={text.noneMatch}>
        <p>{text.noneMatchHint}</p>
      </EmptyState>
    );
  return (
    <EmptyState icon="box" title={text.none} commands={text.firstCommands(location.origin)}>
      <p>{text.noneHint}</p>
    </EmptyState>
  );
}
