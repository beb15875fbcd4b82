import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readChoice, readText } from "#/app/search";

/** The frame of the settings: heading and tabs. */
export const settingsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/settings",
  component: lazyPage(() => import("./SettingsPage"), "SettingsPage"),
});

const profileRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: "/",
  component: lazyPage(() => import("./Profile"), "Profile"),
});

const tokensRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: "/tokens",
  component: lazyPage(() => import("./Tokens"), "Tokens"),
});

const teamsRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: "/teams",
  component: lazyPage(() => import("./Teams"), "Teams"),
});

const secretsRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: "/secrets",
  validateSearch: (search: RawSearch) => compact({ environment: readText(search.environment) }),
  component: lazyPage(() => import("./Secrets"), "Secrets"),
});

const usageRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: "/usage",
  validateSearch: (search: RawSearch) =>
    compact({
      account: readText(search.account),
      group: readChoice(search.group, ["model", "run", "user"] as const),
      days: readChoice(search.days, ["7", "30", "90"] as const),
    }),
  component: lazyPage(() => import("./Usage"), "Usage"),
});

export const SETTINGS_ROUTES = [profileRoute, tokensRoute, teamsRoute, secretsRoute, usageRoute] as const;
