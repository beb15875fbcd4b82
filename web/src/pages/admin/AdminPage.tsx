/** The heading of the pages for admins and their tabs; others are told why they see nothing. */
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect } from "react";
import { type SessionInfo, sessionQuery } from "#/api/session";
import { EmptyState } from "#/design/EmptyState";
import { LinkTabs, tabLinkActive, tabLinkClass } from "#/design/LinkTabs";
import { PageBody, PageHeader } from "#/design/Section";
import { Loaded } from "#/parts/Loaded";
import { words } from "#/words";
import { NobodyHere } from "../settings/NobodyHere";
import { text } from "./words";

const TABS = [
  { to: "/admin", label: text.tabs.users },
  { to: "/admin/models", label: text.tabs.models },
  { to: "/admin/hosts", label: text.tabs.hosts },
  { to: "/admin/sources", label: text.tabs.sources },
  { to: "/admin/storage", label: text.tabs.storage },
  { to: "/admin/balances", label: text.tabs.balances },
  { to: "/admin/audit", label: text.tabs.audit },
] as const;

export function AdminPage() {
  const path = useRouterState({ select: (state) => state.location.pathname.replace(/\/$/, "") });
  const part = TABS.find((tab) => tab.to === path)?.label ?? text.title;
  useEffect(() => {
    document.title = `${part} · ${text.title} · ${words.product}`;
  }, [part]);
  const session = useQuery(sessionQuery);
  return (
    <>
      <PageHeader title={text.title} />
      <LinkTabs label={text.parts}>
        {TABS.map((tab) => (
          <Link
            key={tab.to}
            to={tab.to}
            className={tabLinkClass}
            activeOptions={{ exact: true, includeSearch: false }}
            activeProps={tabLinkActive}
          >
            {tab.label}
          </Link>
        ))}
      </LinkTabs>
      <PageBody>
        <Loaded query={session}>{(found) => <ForAdmins session={found} />}</Loaded>
      </PageBody>
    </>
  );
}

function ForAdmins({ session }: { session: SessionInfo | null }) {
  if (!session?.user) return <NobodyHere hasLogins={session?.has_logins ?? false} />;
  if (!session.user.is_admin)
    return (
      <EmptyState icon="ban" title={text.notAdmin}>
        <p>{text.notAdminHint(session.user.name)}</p>
      </EmptyState>
    );
  if (!session.scopes.includes("admin"))
    return (
      <EmptyState icon="ban" title={text.lacksScope}>
        <p>{text.lacksScopeHint}</p>
      </EmptyState>
    );
  return <Outlet />;
}
