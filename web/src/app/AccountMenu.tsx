/** Who is logged in, the theme, the keys, and the way out. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { logOut, sessionQuery } from "#/api/session";
import { Button, buttonClass, IconButton } from "#/design/Button";
import type { IconName } from "#/design/Icon";
import { Menu, MenuCheck, MenuGroup, MenuItem } from "#/design/Menu";
import { words } from "#/words";
import styles from "./AccountMenu.module.css";
import { forgetSession } from "./session";
import { useStore } from "./store";
import { setTheme, THEMES, theme } from "./theme";

const ICONS: Record<(typeof THEMES)[number], IconName> = { system: "monitor", light: "sun", dark: "moon" };

export function AccountMenu({ onHelp }: { onHelp: () => void }) {
  const { data: session } = useQuery({ ...sessionQuery, meta: { quiet: true } });
  const now = useStore(theme);
  const client = useQueryClient();
  const navigate = useNavigate();
  const leave = async () => {
    forgetSession();
    await logOut();
    client.clear();
    await navigate({ to: "/login" });
  };
  const name = session?.user?.name;
  const trigger = name ? (
    <Button look="quiet" icon="person" aria-label={`${words.session.account}: ${name}`}>
      <span className={styles.name}>{name}</span>
    </Button>
  ) : (
    <IconButton label={words.session.account} icon={ICONS[now]} />
  );
  return (
    <div className={styles.account}>
      {session?.has_logins && !session.user && (
        <Link to="/login" className={buttonClass("plain")}>
          {words.session.logIn}
        </Link>
      )}
      <Menu trigger={trigger}>
        {name && (
          <MenuGroup label={name}>
            <MenuItem icon="person" onSelect={() => void navigate({ to: "/settings" })}>
              {words.session.settings}
            </MenuItem>
            {session.user?.is_admin && (
              <MenuItem icon="wrench" onSelect={() => void navigate({ to: "/admin" })}>
                {words.session.admin}
              </MenuItem>
            )}
          </MenuGroup>
        )}
        <MenuGroup label={words.theme.label}>
          {THEMES.map((each) => (
            <MenuCheck key={each} checked={each === now} onChange={() => setTheme(each)}>
              {words.theme[each]}
            </MenuCheck>
          ))}
        </MenuGroup>
        <MenuGroup label={session ? `${words.product} ${session.server_version}` : words.product}>
          <MenuItem icon="help" hint="?" onSelect={onHelp}>
            {words.keys.title}
          </MenuItem>
          {name && (
            <MenuItem icon="external" onSelect={() => void leave()}>
              {words.session.logOut}
            </MenuItem>
          )}
        </MenuGroup>
      </Menu>
    </div>
  );
}
