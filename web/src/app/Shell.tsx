/** The frame around every page: navigation, palette, keys, the state of the feed, the live region. */
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { copyText } from "#/design/CopyButton";
import { Icon } from "#/design/Icon";
import { words } from "#/words";
import { AccountMenu } from "./AccountMenu";
import { announcements } from "./announcer";
import { FeedBanner } from "./FeedBanner";
import { listenForKeys, useKeys } from "./keys";
import { useNavigation } from "./navigation";
import styles from "./Shell.module.css";
import { endedSession } from "./session";
import { useStore } from "./store";
import { useCurrentInView } from "./useCurrentInView";

const Palette = lazy(() => import("./Palette").then((module) => ({ default: module.Palette })));
const SessionEnded = lazy(() =>
  import("#/pages/login/SessionEnded").then((module) => ({ default: module.SessionEnded })),
);
const KeyHelp = lazy(() => import("./KeyHelp").then((module) => ({ default: module.KeyHelp })));

type Overlay = "palette" | "help" | null;

export function Shell() {
  const [overlay, setOverlay] = useState<Overlay>(null);
  const ended = useStore(endedSession);
  useGlobalKeys(setOverlay);
  const bare = useRouterState({ select: (state) => state.location.pathname === "/login" });
  if (bare) return <Outlet />;
  return (
    <div className={styles.shell}>
      <a href="#main" className={styles.skip}>
        {words.skipToContent}
      </a>
      <header className={styles.bar}>
        <Brand />
        <Navigation />
        <button type="button" className={styles.find} onClick={() => setOverlay("palette")}>
          <Icon name="search" />
          <span className={styles.findWords}>{words.palette.open}</span>
          <span className={styles.findKey} aria-hidden="true">
            Ctrl K
          </span>
        </button>
        <AccountMenu onHelp={() => setOverlay("help")} />
      </header>
      <FeedBanner />
      <main id="main" className={styles.main} tabIndex={-1}>
        <Outlet />
      </main>
      <LiveRegion />
      <Suspense fallback={null}>
        {overlay === "palette" && <Palette onClose={() => setOverlay(null)} />}
        {ended !== null && <SessionEnded user={ended} />}
        {overlay === "help" && <KeyHelp onClose={() => setOverlay(null)} />}
      </Suspense>
    </div>
  );
}

function Brand() {
  return (
    <Link to="/" className={styles.brand} aria-label={`${words.product}: ${words.nav.home}`}>
      <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true" className={styles.logo}>
        <rect width="32" height="32" rx="7" />
        <path d="M7 16h18M7 12v8M25 12v8" />
        <circle cx="16" cy="16" r="4" />
      </svg>
      <span className={styles.product}>{words.product}</span>
    </Link>
  );
}

function Navigation() {
  const pages = useNavigation();
  const row = useCurrentInView();
  const isEnvironment = useRouterState({ select: (state) => state.location.pathname.startsWith("/e/") });
  return (
    <nav ref={row} className={styles.nav} aria-label={words.navigation}>
      {pages
        .filter((item) => item.to !== "/")
        .map((item) => (
          <Link
            key={item.to}
            to={item.to}
            className={styles.link}
            activeProps={{ "aria-current": "page" }}
            {...(isEnvironment && item.to === "/environments" && { "aria-current": "page" })}
          >
            {item.label}
          </Link>
        ))}
    </nav>
  );
}

function LiveRegion() {
  const { text, count } = useStore(announcements);
  return (
    <div className={styles.live} role="status" aria-live="polite">
      <span key={count}>{text}</span>
    </div>
  );
}

function useGlobalKeys(open: (overlay: Overlay) => void): void {
  const navigate = useNavigate();
  const pages = useNavigation();
  useKeys([
    { keys: "?", label: words.keys.help, run: () => open("help") },
    ...pages.map((item) => ({
      keys: `g ${item.key}`,
      label: words.keys.go(item.label),
      run: () => void navigate({ to: item.to }),
    })),
    { keys: "y", label: words.keys.copyLink, run: () => void copyText(location.href) },
  ]);
  useEffect(() => {
    const stop = listenForKeys(document, () => document.querySelector("[role=dialog]") !== null);
    const onPalette = (event: KeyboardEvent) => {
      if (
        event.key.toLowerCase() !== "k" ||
        !(event.ctrlKey || event.metaKey) ||
        event.shiftKey ||
        event.altKey
      )
        return;
      event.preventDefault();
      open("palette");
    };
    document.addEventListener("keydown", onPalette);
    return () => {
      stop();
      document.removeEventListener("keydown", onPalette);
    };
  }, [open]);
}
