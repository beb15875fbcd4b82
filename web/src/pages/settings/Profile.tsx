/** The account: its name, what this session may do, and the browsers that are logged in. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { LOGIN_KEY, loginsQuery } from "#/api/account";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import { sessionQuery } from "#/api/session";
import type { BrowserLogin } from "#/api/types";
import { Badge, Mark } from "#/design/Badge";
import { Facts } from "#/design/Facts";
import { Section } from "#/design/Section";
import { DataTable } from "#/parts/DataTable";
import { When } from "#/parts/Figures";
import { formatTime } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { Problem } from "#/parts/Problem";
import { RefusableButton } from "#/parts/RefusableButton";
import styles from "./forms.module.css";
import { useAccount } from "./useAccount";
import { text } from "./words";

const words = text.profile;

export function Profile() {
  const { data: session } = useQuery(sessionQuery);
  const { scopes, isAdmin } = useAccount();
  if (!session?.user) return null;
  return (
    <>
      <Section title={words.account}>
        <Facts
          facts={[
            { name: words.name, value: session.user.name },
            { name: words.role, value: isAdmin ? words.admin : words.user },
            { name: words.since, value: <When at={session.user.created_at} /> },
            { name: words.session, value: <When at={session.expires_at} /> },
            {
              name: words.teams,
              value:
                session.teams.length === 0
                  ? words.noTeams
                  : session.teams.map(({ team }, index) => (
                      <span key={team}>
                        {index > 0 && ", "}
                        <Link to="/settings/teams">{team}</Link>
                      </span>
                    )),
            },
          ]}
        />
      </Section>
      <Section title={words.rights} note={words.rightsNote} flush>
        <DataTable
          label={words.rights}
          columns={[
            { title: words.right, cell: (scope) => text.scopes[scope] },
            { title: words.scope, cell: (scope) => <code>{scope}</code> },
            {
              title: words.allowed,
              cell: (scope) =>
                scopes.includes(scope) ? (
                  <Mark tone="good" icon="check">
                    {words.may}
                  </Mark>
                ) : (
                  <span>
                    <Mark icon="minus">{words.mayNot}</Mark>{" "}
                    <span className={styles.faint}>
                      {scope === "admin" && !isAdmin ? words.adminOnly : words.mayNotWhy}
                    </span>
                  </span>
                ),
            },
          ]}
          rows={Object.keys(text.scopes)}
          keyOf={(scope) => scope}
          empty={null}
        />
      </Section>
      <Logins />
    </>
  );
}

function Logins() {
  const logins = useQuery(loginsQuery);
  const { reason } = useAccount();
  const end = useChange<BrowserLogin>({
    send: (login) =>
      read(api.DELETE("/api/v1/logins/{login_id}", { params: { path: { login_id: login.id } } })),
    refresh: [LOGIN_KEY],
  });
  return (
    <Section title={words.logins} flush>
      <Loaded query={logins}>
        {(found) => (
          <DataTable
            label={words.logins}
            columns={[
              {
                title: words.browser,
                cell: (login) => (
                  <>
                    <When at={login.created_at} />{" "}
                    {login.is_current && (
                      <Badge tone="accent" icon="monitor">
                        {words.current}
                      </Badge>
                    )}
                  </>
                ),
              },
              { title: words.token, cell: (login) => login.token_name || text.tokens.unnamed },
              { title: words.expires, cell: (login) => <When at={login.expires_at} /> },
              {
                title: text.actions,
                isActions: true,
                cell: (login) => (
                  <RefusableButton
                    small
                    reason={login.is_current ? null : reason("tokens:write", text.tokens.lacks)}
                    aria-label={words.endOf(formatTime(login.created_at))}
                    onClick={() => end.submit(login)}
                  >
                    {words.end}
                  </RefusableButton>
                ),
              },
            ]}
            rows={found}
            keyOf={(login) => login.id}
            empty={words.noLogins}
          />
        )}
      </Loaded>
      <Problem error={end.error} />
    </Section>
  );
}
