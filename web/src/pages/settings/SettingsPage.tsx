/** The heading of the settings and their tabs, around the part that is shown. */
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect } from "react";
import { sessionQuery } from "#/api/session";
import { LinkTabs, tabLinkActive, tabLinkClass } from "#/design/LinkTabs";
import { PageBody, PageHeader } from "#/design/Section";
import { Loaded } from "#/parts/Loaded";
import { words } from "#/words";
import { NobodyHere } from "./NobodyHere";
import { text } from "./words";

const TABS = [
  { to: "/settings", label: text.tabs.profile },
  { to: "/settings/tokens", label: text.tabs.tokens },
  { to: "/settings/teams", label: text.tabs.teams },
  { to: "/settings/secrets", label: text.tabs.secrets },
  { to: "/settings/usage", label: text.tabs.usage },
] as const;

export function SettingsPage() {
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
        <Loaded query={session}>
          {(found) => (found?.user ? <Outlet /> : <NobodyHere hasLogins={found?.has_logins ?? false} />)}
        </Loaded>
      </PageBody>
    </>
  );
}
