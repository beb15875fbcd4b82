/** The heading of an environment and its tabs, around the part that is shown. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, Outlet, useMatchRoute } from "@tanstack/react-router";
import { useEffect } from "react";
import { environmentQuery, slugOf } from "#/api/environments";
import { sessionQuery } from "#/api/session";
import { usePolling } from "#/app/feed";
import { LoadError } from "#/app/PageError";
import { buttonClass } from "#/design/Button";
import { EmptyState } from "#/design/EmptyState";
import { LinkTabs, tabLinkActive, tabLinkClass } from "#/design/LinkTabs";
import { FullPage } from "#/design/Section";
import { Skeleton } from "#/design/Skeleton";
import { words } from "#/words";
import { EnvironmentContext, splitVersion } from "./context";
import { EnvironmentHeader } from "./EnvironmentHeader";
import styles from "./environment.module.css";
import { text } from "./words";

const route = getRouteApi("/e/$owner/$name");

const TABS = [
  { to: "/e/$owner/$name/readme", label: text.tabs.readme },
  { to: "/e/$owner/$name/evaluations", label: text.tabs.evaluations },
  { to: "/e/$owner/$name/versions", label: text.tabs.versions },
  { to: "/e/$owner/$name/files/$", label: text.tabs.files },
  { to: "/e/$owner/$name/arguments", label: text.tabs.arguments },
  { to: "/e/$owner/$name/tasks", label: text.tabs.tasks },
  { to: "/e/$owner/$name/secrets", label: text.tabs.secrets },
  { to: "/e/$owner/$name/access", label: text.tabs.access },
] as const;

export function EnvironmentPage() {
  const params = route.useParams();
  const { name, version } = splitVersion(params.name);
  const slug = { owner: params.owner, name };
  const session = useQuery({ ...sessionQuery, meta: { quiet: true } });
  const isServer = session.data?.has_logins === true;
  const refetchInterval = usePolling();
  const found = useQuery({ ...environmentQuery(slug), enabled: isServer, refetchInterval });
  const isEvaluations = useMatchRoute()({ to: "/e/$owner/$name/evaluations" }) !== false;
  const title = slugOf(slug);
  useEffect(() => {
    document.title = `${title} · ${words.product}`;
  }, [title]);
  const isMissing = session.data !== undefined && (!isServer || found.data === null);
  // Runs may name an environment that is on no hub: its evaluations are still there to read.
  if (isMissing && isEvaluations) return <Outlet />;
  if (isMissing)
    return <NotThere owner={params.owner} slug={title} isLoggedIn={Boolean(session.data?.user)} />;
  if (found.error && !found.data)
    return <LoadError error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Skeleton lines={8} />;
  const shown = {
    environment: found.data,
    version: version ?? found.data.latest?.version ?? null,
    user: session.data?.user?.name ?? null,
    teams: session.data?.teams.map(({ team }) => team) ?? [],
  };
  return (
    <EnvironmentContext value={shown}>
      <FullPage>
        <EnvironmentHeader pinned={version} />
        <LinkTabs label={text.parts}>
          {TABS.map((tab) => (
            <Link
              key={tab.to}
              to={tab.to}
              params={{ ...params, _splat: "" }}
              className={tabLinkClass}
              activeOptions={{ includeSearch: false }}
              activeProps={tabLinkActive}
            >
              {tab.label}
            </Link>
          ))}
        </LinkTabs>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
        <section className={styles.part} aria-label={title} tabIndex={0}>
          <Outlet />
        </section>
      </FullPage>
    </EnvironmentContext>
  );
}

function NotThere({ owner, slug, isLoggedIn }: { owner: string; slug: string; isLoggedIn: boolean }) {
  return (
    <EmptyState
      icon="help"
      title={text.notThereTitle}
      action={
        isLoggedIn ? (
          <Link to="/environments" className={buttonClass("plain")}>
            {text.allEnvironments}
          </Link>
        ) : (
          <Link
            to="/login"
            search={{ next: location.pathname + location.search }}
            className={buttonClass("primary")}
          >
            {words.session.logIn}
          </Link>
        )
      }
    >
      <p>{text.notThere(slug)}</p>
      <p>{text.notThereHint(owner)}</p>
    </EmptyState>
  );
}
